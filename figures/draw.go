package figures

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Size of a picture: one panel is 6.4 x 4.2 inches, 1408 x 924 pixels.
const (
	panelWidth   = 6.4 * vg.Inch
	panelHeight  = 4.2 * vg.Inch
	legendHeight = 32 // points, above the panels
	margin       = 8  // points, around everything
	dotsPerInch  = 220
)

// Draw writes ttft, throughput and tbt as PNG and CSV into dir and returns
// the paths of the PNGs. Points whose queue was unstable are hollow.
func Draw(dir string, runs []Run) ([]string, error) {
	var files []string
	for _, m := range metrics() {
		p := panels(runs, m.value)
		if len(p) == 0 {
			return nil, fmt.Errorf("%s: no run finished a request, so there is nothing to draw", dir)
		}
		png, err := render(m, p)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, m.file+".png")
		if err := renameio.WriteFile(path, png, 0o644); err != nil {
			return nil, err
		}
		if err := renameio.WriteFile(filepath.Join(dir, m.file+".csv"), tabulate(m, p), 0o644); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	return files, nil
}

// DrawFolders draws the runs of result folders together, a panel for each
// model, into dir.
func DrawFolders(dir string, folders []string) ([]string, error) {
	var runs []Run
	for _, f := range folders {
		more, err := Read(f)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return Draw(dir, runs)
}

// render draws the panels side by side under one legend.
func render(m metric, ps []panel) ([]byte, error) {
	img := vgimg.NewWith(
		vgimg.UseWH(panelWidth*vg.Length(len(ps)), panelHeight),
		vgimg.UseDPI(dotsPerInch),
	)
	all := draw.Crop(draw.New(img), margin, -margin, margin, -margin)
	looks := lookOf(systemsOf(ps))
	drawLegend(draw.Crop(all, 0, 0, all.Max.Y-all.Min.Y-legendHeight, 0), ps, looks)

	body := draw.Crop(all, 0, 0, 0, -legendHeight)
	tiles := draw.Tiles{Rows: 1, Cols: len(ps), PadX: 2 * margin}
	row := make([]*plot.Plot, len(ps))
	for i, p := range ps {
		title := ""
		if len(ps) > 1 {
			title = fmt.Sprintf("(%c) %s", 'a'+i, p.model)
		}
		row[i] = newPlot(m, p, axisOf(m, p, ps), title, looks)
	}
	for i, c := range plot.Align([][]*plot.Plot{row}, tiles, body)[0] {
		row[i].Draw(c)
	}

	var out bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&out)
	return out.Bytes(), err
}

// systemsOf lists the systems of all panels, each once.
func systemsOf(ps []panel) []string {
	var systems []string
	seen := map[string]bool{}
	for _, p := range ps {
		for _, c := range p.curves {
			if !seen[c.system] {
				seen[c.system] = true
				systems = append(systems, c.system)
			}
		}
	}
	return systems
}

// tabulate writes the numbers of a figure, one row a marker.
func tabulate(m metric, ps []panel) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write([]string{"model", "gpu", "system", "rate", "runs", "mean_" + m.unit, "low95_" + m.unit, "high95_" + m.unit, "unstable"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, p := range ps {
		for _, c := range p.curves {
			for _, q := range c.points {
				w.Write([]string{p.model, p.gpu, c.system, number(q.rate), strconv.Itoa(q.runs),
					number(q.mean), number(q.low), number(q.high), strconv.FormatBool(q.unstable)})
			}
		}
	}
	w.Flush()
	return out.Bytes()
}
