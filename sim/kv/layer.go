package kv

// Layer is a model layer with sampled groups.
type Layer struct {
	Number   int // in the model
	From, To int // its groups, as indices into the sample

	index   int    // among the sampled layers
	pool    int    // pool of its groups
	version uint32 // grows when blocks become idle or their scores change
}

// layersOf returns the layers with groups in the sample.
func layersOf(geo Geometry, sample Sample) []*Layer {
	var layers []*Layer
	for i, g := range sample.Groups {
		number := int(g) / geo.KVHeads
		if n := len(layers); n == 0 || layers[n-1].Number != number {
			layers = append(layers, &Layer{Number: number, From: i, index: n})
		}
		layers[len(layers)-1].To = i + 1
	}
	return layers
}
