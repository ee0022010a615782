package bracket

// Verdict is the answer at one value of a range.
type Verdict string

// Undecided is the verdict if an answer cannot be given.
const (
	Holds     Verdict = "holds"
	Fails     Verdict = "fails"
	Undecided Verdict = "undecided"
)

// answer is a value with its verdict.
type answer struct {
	at      float64
	verdict Verdict
}

// Cross tries the values of a range, ascending, until two have opposite verdicts, and narrows where
// they change. It returns the last value of one verdict and the first of its opposite; the range
// between them is undecided. If only one verdict occurs, Cross returns it with the nearest
// undecided value, or both ends of the range.
func (l *Line) Cross(values []float64, ask func(at float64) (Verdict, error)) (low, high float64,
	err error) {
	tried, opposite, err := scan(values, ask)
	if err != nil {
		return 0, 0, err
	}
	n := len(tried)
	first, last := tried[0], tried[n-1]
	if first.verdict == last.verdict {
		return first.at, last.at, nil
	}
	i := 0 // the last of the first verdict
	for k := range tried {
		if tried[k].verdict == first.verdict {
			i = k
		}
	}
	start, end, err := l.narrow(tried[i], tried[i+1], ask,
		func(v Verdict) bool { return v == first.verdict })
	if err != nil || !opposite || end.verdict == last.verdict {
		return start.at, end.at, err
	}
	if n > 2 {
		end = tried[n-2]
	}
	_, end, err = l.narrow(end, last, ask, func(v Verdict) bool { return v != last.verdict })
	return start.at, end.at, err
}

// scan tries values until two have opposite verdicts. It then returns the values from the last one
// with the first verdict on.
func scan(values []float64, ask func(float64) (Verdict, error)) (tried []answer, opposite bool,
	err error) {
	decided := -1 // the last of the first verdict
	for i, at := range values {
		v, err := ask(at)
		if err != nil {
			return nil, false, err
		}
		tried = append(tried, answer{at, v})
		switch {
		case v == Undecided:
		case decided < 0 || v == tried[decided].verdict:
			decided = i
		default:
			return tried[decided:], true, nil
		}
	}
	return tried, false, nil
}

// narrow narrows a bracket whose lower end is below and whose upper end is not.
func (l *Line) narrow(low, high answer, ask func(float64) (Verdict, error),
	below func(Verdict) bool) (answer, answer, error) {
	verdicts := map[float64]Verdict{low.at: low.verdict, high.at: high.verdict}
	tried, err := l.Find([]Tried{{low.at, true}, {high.at, false}},
		func(at float64, _ bool) (_ bool, err error) {
			verdicts[at], err = ask(at)
			return below(verdicts[at]), err
		})
	from, to := Ends(tried)
	return answer{from, verdicts[from]}, answer{to, verdicts[to]}, err
}
