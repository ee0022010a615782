package figures

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// reduced encodes a picture in at most 256 colours, a third of the bytes: colours at the edges of
// glyphs and lines are rounded to the nearest palette colour, by less than the tolerance of
// samePicture.
func reduced(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	size := full.Bounds()
	count := map[color.RGBA]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	colours := palette(count)
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(colours.Index(c))
	}
	out := image.NewPaletted(size, colours)
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)])
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}

// palette keeps the most frequent colours that differ by some distance in a channel, the least
// of which so few are left that a palette holds them.
func palette(count map[color.RGBA]int) color.Palette {
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	for distance := 1; ; distance++ {
		var kept []color.RGBA
		for _, c := range all {
			if len(kept) > 256 {
				break
			}
			if !slices.ContainsFunc(kept, func(k color.RGBA) bool {
				return apart(c.R, k.R) < distance && apart(c.G, k.G) < distance && apart(c.B, k.B) < distance
			}) {
				kept = append(kept, c)
			}
		}
		if len(kept) <= 256 {
			p := make(color.Palette, len(kept))
			for i, c := range kept {
				p[i] = c
			}
			return p
		}
	}
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
