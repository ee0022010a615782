package cuda

// HeadLinearArgs is y = x w^T of each head.
type HeadLinearArgs struct {
	X, W, Y                Ptr
	XToken, XHead          int64
	Tokens, Heads, In, Out int32
}

// RotateArgs rotates the first values of each head in place.
type RotateArgs struct {
	X, Position, InvFreq    Ptr
	TokenStride, HeadStride int64
	Tokens, Heads, Dim      int32
}

// LatentWriteArgs norms, rotates and stores the cached state of each token in a layer: the row of
// latent attention and the indexer's key.
type LatentWriteArgs struct {
	Latent, Key, Norm, KeyNorm, KeyBias, Position, InvFreq, RowTo, KeyTo Ptr
	Tokens, Rank, Rope, KeyDim                                           int32
	Eps                                                                  float32
}

// IndexScoresArgs is the indexer's score of every token of a context, for each row.
type IndexScoresArgs struct {
	Q, Weight, Key, Context, Scores Ptr
	Rows, Heads, Dim, Stride        int32
	Scale                           float32
}

// LatentAttendArgs is absorbed latent attention to listed rows.
type LatentAttendArgs struct {
	Q, QRope, KV, List, Count, Out  Ptr
	RopeRow, RopeHead               int64
	Rows, Heads, Rank, Rope, Stride int32
	Scale                           float32
}
