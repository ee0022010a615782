package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// openedReport is a browser's view of a report in a frame of the given width.
type openedReport struct {
	Name   string
	Width  int
	Scheme string

	Charts   int      // that are drawn: with a pixel in them
	Empty    []string // charts that are not drawn
	Overflow int      // pixels that the page is wider than its frame
	Wide     []string // elements that stand out of it
	Ground   string   // colour
	Tip      string   // text shown when hovering over the first line chart
	Zoomed   bool     // a drag over it narrows its axis, and a double click widens it
	Lines    bool     // there is such a chart
}

// inspector opens the reports in sequence in a frame and posts what it finds.
const inspector = `<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
const visits = %s;
const sleep = ms => new Promise(r => setTimeout(r, ms));
const drawn = c => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some(v => v !== 0);
async function visit(v) {
  const frame = document.createElement("iframe");
  frame.style = "border:0;height:900px;width:" + v.Width + "px;color-scheme:" + v.Scheme;
  document.documentElement.style.colorScheme = v.Scheme;
  frame.src = v.Name + ".html";
  document.body.append(frame);
  await new Promise(r => { frame.onload = r; });
  const page = frame.contentDocument, root = page.documentElement, echarts = frame.contentWindow.echarts;
  for (let i = 0; i < 200 && root.dataset.charts === undefined; i++) await sleep(50);
  await sleep(100);
  v.Empty = []; v.Charts = 0; v.Wide = []; v.Lines = false; v.Tip = "";
  for (const e of page.querySelectorAll(".chart")) {
    const c = e.querySelector("canvas");
    if (c && c.width > 0 && drawn(c)) v.Charts++; else v.Empty.push(e.id);
  }
  v.Overflow = Math.max(root.scrollWidth, page.body.scrollWidth) - root.clientWidth;
  for (const e of page.querySelectorAll("main *")) {
    if (!e.closest(".scroll, pre, .chart, details") && e.getBoundingClientRect().right > root.clientWidth + 0.5) v.Wide.push(e.tagName + " " + e.className);
  }
  v.Ground = frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  const lines = JSON.parse(page.getElementById("charts").textContent).find(c => c.lines);
  if (lines) {
    v.Lines = true;
    const e = page.getElementById(lines.id), chart = echarts.getInstanceByDom(e), rect = e.getBoundingClientRect();
    const target = e.querySelector("canvas").parentElement;
    const send = (type, x, y, n) => target.dispatchEvent(new frame.contentWindow.MouseEvent(type,
      { bubbles: true, cancelable: true, view: frame.contentWindow, button: 0, detail: n || 1, clientX: rect.left + x * rect.width, clientY: rect.top + y * rect.height }));
    const span = () => { const [a, b] = chart.getModel().getComponent("xAxis").axis.scale.getExtent(); return b - a; };
    const before = span();
    const points = lines.lines.find(l => l.points.length).points, point = points[Math.floor(points.length / 2)];
    const at = chart.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, [point.x, point.y]);
    send("mousemove", (at[0] - 1) / rect.width, (at[1] - 1) / rect.height);
    await sleep(300);
    v.Tip = [...e.querySelectorAll("div")].map(d => d.innerText || "").filter(s => /\d/.test(s)).join(" ");
    send("mousedown", 0.3, 0.3); send("mousemove", 0.4, 0.5); send("mousemove", 0.6, 0.7); send("mouseup", 0.6, 0.7);
    await sleep(200);
    const during = span();
    send("click", 0.5, 0.5, 2); send("dblclick", 0.5, 0.5, 2);
    await sleep(200);
    v.Zoomed = during < 0.9 * before && Math.abs(span() - before) < 1e-9 * Math.abs(before);
    v.Spans = [before, during, span()];
  }
  frame.remove();
  return v;
}
(async () => {
  const found = [];
  try { for (const v of visits) found.push(await visit(v)); }
  catch (e) { found.push({ Name: "inspector", Empty: [String(e.stack || e)] }); }
  await fetch("found", { method: "POST", body: JSON.stringify(found) });
})();
</script>`

// openInBrowser opens reports in headless Chromium, wide and narrow, light and dark: there is no
// error on the console, every chart is drawn, nothing stands out of the page to the right, and
// charts answer to the pointer.
func openInBrowser(t *testing.T, reports map[string]string) {
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		fmt.Fprintln(os.Stderr, "NOT TESTED: no chromium on the PATH, so no report was opened in a "+
			"browser")
		t.Skip("no chromium")
	}
	var visits []openedReport
	for _, r := range reported {
		visits = append(visits, openedReport{Name: r.name, Width: 1280, Scheme: "light"},
			openedReport{Name: r.name, Width: 390, Scheme: "dark"})
	}
	found, stderr := visit(t, chromium, visits, reports)
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("on the console: %s", line)
		}
	}
	if len(found) != len(visits) {
		t.Fatalf("%d of %d visits: %+v", len(found), len(visits), found)
	}
	for i, v := range found {
		if want := reported[i/2].charts; v.Charts != want || len(v.Empty) > 0 {
			t.Errorf("%s at %d: %d charts of %d, empty %v", v.Name, v.Width, v.Charts, want, v.Empty)
		}
		if v.Overflow > 0 || len(v.Wide) > 0 {
			t.Errorf("%s at %d: %d pixels too wide: %v", v.Name, v.Width, v.Overflow, v.Wide)
		}
		if light := v.Ground == "rgb(255, 255, 255)"; light != (v.Scheme == "light") {
			t.Errorf("%s in %s is on %s", v.Name, v.Scheme, v.Ground)
		}
		if v.Lines && (v.Tip == "" || !v.Zoomed) {
			t.Errorf("%s at %d: hovering says %q, a drag zooms: %v", v.Name, v.Width, v.Tip, v.Zoomed)
		}
	}
	if !slices.ContainsFunc(found, func(v openedReport) bool { return v.Lines }) {
		t.Error("no chart of lines was hovered over")
	}
}

// browserPatience is how long all visits may take.
const browserPatience = 2 * time.Minute

// visit serves the reports to the browser and returns what it posts, and what it writes on its
// standard error.
func visit(t *testing.T, chromium string, visits []openedReport, reports map[string]string) (
	found []openedReport, stderr string) {
	t.Helper()
	plan, err := json.Marshal(visits)
	if err != nil {
		t.Fatal(err)
	}
	posted := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".html")
		switch page, ok := reports[name]; {
		case ok:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, page)
		case name == "found":
			text, _ := io.ReadAll(r.Body)
			posted <- text
		case name == "":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, inspector, plan)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), browserPatience)
	defer cancel()
	var console strings.Builder
	browser := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
		"--window-size=1300,950",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", server.URL+"/")
	browser.Stderr = &console
	browser.WaitDelay = 5 * time.Second
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	select {
	case text = <-posted:
	case <-ctx.Done():
	}
	cancel()
	browser.Wait()
	if text == nil {
		t.Fatalf("the browser found nothing within %v:\n%s", browserPatience, console.String())
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return found, console.String()
}
