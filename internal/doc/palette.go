package doc

// palette is the colours of series. Dashes distinguish colours of equal lightness.
var palette = []struct {
	color  string
	dashed bool
}{
	{"#1a1a1a", false}, {"#0072b2", true}, {"#e69f00", true}, {"#c62f1f", false}, {"#009e73", true},
	{"#a0609a", true}, {"#7a7a7a", true}, {"#56b4e9", false}, {"#f0e442", false},
}

// Color returns the colour of series n, and whether its line is dashed. Colours repeat after nine.
func Color(n int) (hex string, dashed bool) {
	p := palette[n%len(palette)]
	return p.color, p.dashed || n >= len(palette)
}

// Published is the name of the values of a paper.
const Published = "published"

// Grey is the colour of the reference that series are compared with.
const Grey = "#606060"
