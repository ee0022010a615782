package run

import "math"

// AttentionCost is the share of a model's accuracy that a request loses if its heads miss all
// attention. It is set so that SparseServe's budget of 2,048 tokens gives 99 % of full accuracy, as
// its appendix A.1 reports for LWM-7B on its LongBench mix; TestProxyOfPublishedBudget checks it.
// The other published budget, PSA's Fig. 5 at 98 %, sets the group spread of the scores.
const AttentionCost = 1.0

// AccuracyProxy estimates the share of full attention's accuracy that a request keeps. It is a
// proxy: nothing here runs a model or scores an answer.
//
// A head that misses a share x of its attention has an output error of about x. Errors of different
// heads point in different directions, so their squares add up. A small error of the output costs
// accuracy in second order: the loss is the mean of x^2 over tokens, layers and heads, times one
// constant.
func AccuracyProxy(meanSquareMissed float64) float64 {
	return math.Max(0, 1-AttentionCost*meanSquareMissed)
}
