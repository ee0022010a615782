(function () {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent) || [];
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const text = echarts.format.encodeHTML;

  // The figures' colours; on dark ground those that would not show are lighter.
  const lighter = { "#1a1a1a": "#e8e8e8", "#0072b2": "#4aa8e0", "#c62f1f": "#f2705f", "#7a7a7a": "#a9a9a9", "#606060": "#b0b0b0",
    "#009e73": "#2fc49a", "#a0609a": "#c98ac2", "#2b4c7e": "#5f8fd0" };
  const shown = color => scheme.matches && lighter[color] || color;
  const ink = () => scheme.matches
    ? { text: "#e4e8ec", soft: "#9aa5b1", line: "#39424c", ground: "#1b2027" }
    : { text: "#1c2024", soft: "#5b6570", line: "#dfe3e7", ground: "#f6f8fa" };

  // Three digits, as the tables have them.
  function digits(v) {
    if (v === null || v === undefined || Number.isNaN(v)) return "-";
    return v === 0 ? "0" : v.toFixed(Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v))))));
  }

  // At an axis, a number has as few as it needs.
  function tick(v) {
    const a = Math.abs(v);
    if (a >= 1e9) return (v / 1e9).toPrecision(3) + "G";
    if (a >= 1e6) return (v / 1e6).toPrecision(3) + "M";
    if (a >= 1000 || Number.isInteger(v)) return v.toFixed(0);
    return String(Number(v.toPrecision(3)));
  }

  function axis(kind, log, extra) {
    const c = ink();
    return Object.assign({
      type: log ? "log" : kind, splitLine: { lineStyle: { color: c.line } }, minorSplitLine: { show: false },
      axisLine: { lineStyle: { color: c.soft } }, axisTick: { lineStyle: { color: c.soft } },
      axisLabel: { color: c.soft, fontSize: 12, hideOverlap: true, formatter: kind === "category" ? undefined : tick },
      nameTextStyle: { color: c.soft, fontSize: 12 },
    }, extra);
  }

  function common(names) {
    const c = ink();
    return {
      animation: false, backgroundColor: "transparent", textStyle: { color: c.text, fontFamily: "inherit" },
      tooltip: { confine: true, backgroundColor: c.ground, borderColor: c.line, textStyle: { color: c.text, fontSize: 13 } },
      legend: names.length > 1 ? { type: "scroll", top: 0, left: 8, right: 8, data: names, textStyle: { color: c.text, fontSize: 12 },
        pageTextStyle: { color: c.soft }, pageIconColor: c.soft, itemWidth: 22, itemGap: 12 } : { show: false },
    };
  }

  // A drag zooms on both axes.
  const zoomed = () => ({
    toolbox: { show: true, itemSize: 0, feature: { dataZoom: { xAxisIndex: 0, yAxisIndex: 0, filterMode: "none", icon: { zoom: "path://", back: "path://" } } } },
  });

  const marker = color => '<span style="display:inline-block;width:9px;height:9px;border-radius:5px;margin-right:5px;background:' + color + '"></span>';
  const interval = p => p.runs ? " (runs " + p.runs.map(digits).join(", ") + ")" : p.low !== undefined ? " (" + digits(p.low) + " to " + digits(p.high) + ")" : "";
  const doubts = p => [p.note, p.unstable && "unstable queue", p.grows && "waits grow", p.rejects && "requests rejected"].filter(t => t).join(", ");
  const hollow = color => ({ color: ink().ground, borderColor: color, borderWidth: 2 });

  function lines(c) {
    const bare = c.lines.length > 5, names = c.lines.map(l => l.name).filter(n => n);
    const series = [], top = c.yEnds[1], over = p => p.y > top;
    c.lines.forEach((l, i) => {
      const color = shown(l.color);
      series.push({
        type: l.dots ? "scatter" : "line", name: l.name, symbol: l.bare ? "none" : "circle", symbolSize: l.dots ? 5 : 7, z: 3 + i,
        itemStyle: { color: color }, lineStyle: { color: color, width: 2, type: l.dashed ? "dashed" : "solid" }, emphasis: { focus: "series" },
        data: l.points.map(p => ({ value: [p.x, over(p) ? top : p.y], point: p, symbol: over(p) ? "triangle" : undefined,
          label: over(p) ? { show: true, position: "bottom", color: color, backgroundColor: ink().ground, padding: [1, 3], formatter: () => digits(p.y) } : undefined,
          itemStyle: doubts(p) ? hollow(color) : undefined })),
        markLine: i === 0 && c.levels ? { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: ink().soft, type: "dashed" },
          data: c.levels.map(v => ({ yAxis: v })) } : undefined,
      });
      const whiskers = [];
      if (!bare) l.points.forEach(p => { if (p.low !== undefined && !p.runs) whiskers.push([p.x, p.low], [p.x, p.high], [p.x, "-"]); });
      const runs = l.points.flatMap(p => (p.runs || []).map(v => [p.x, v]));
      if (runs.length) series.push({ type: "scatter", name: l.name, silent: true, data: runs, z: 2, symbolSize: 4, itemStyle: { color: color, opacity: .6 } });
      if (whiskers.length) series.push({ type: "line", name: l.name, symbol: "none", silent: true, data: whiskers, z: 2,
        lineStyle: { color: color, width: 1.2, opacity: .75 }, itemStyle: { color: color }, emphasis: { disabled: true } });
    });
    const legend = common([...new Set(names)]);
    // A line without markers has a legend sample without one.
    if (legend.legend.data) legend.legend.data = legend.legend.data.map(name => {
      const l = c.lines.find(l => l.name === name);
      return !l.bare ? name : { name: name, icon: l.dashed ? "path://M0,0h6v2h-6zM8,0h6v2h-6zM16,0h6v2h-6z" : "path://M0,0h22v2h-22z",
        lineStyle: { width: 0 }, itemStyle: { color: shown(l.color), borderWidth: 0 } };
    });
    const item = c.lines.some(l => l.dots);
    legend.tooltip.trigger = item ? "item" : "axis";
    legend.tooltip.axisPointer = { type: "line", lineStyle: { color: ink().soft } };
    legend.tooltip.formatter = found => {
      const all = (Array.isArray(found) ? found : [found]).filter(f => f.data && f.data.point);
      if (!all.length) return "";
      const x = tick(all[0].data.point.x);
      return text(c.x + ": " + x) + all.map(f => "<br>" + marker(f.color === ink().ground ? f.borderColor : f.color) + text(f.seriesName + " " + digits(f.data.point.y) + interval(f.data.point) +
        (doubts(f.data.point) ? ", " + doubts(f.data.point) : ""))).join("");
    };
    return Object.assign(legend, zoomed(), {
      grid: { left: 58, right: 18, top: names.length > 1 ? 34 : 12, bottom: 46 },
      xAxis: axis("value", c.logX, Object.assign({ name: c.x, nameLocation: "middle", nameGap: 28, scale: true, splitLine: { show: false } }, ends(c.xEnds, c.logX, c.lines.filter(l => !l.bare && !l.dots).flatMap(l => l.points.map(p => p.x))))),
      yAxis: axis("value", c.logY, Object.assign(ends(c.yEnds, c.logY), c.whole ? { minInterval: 1 } : {})),
      series: series,
    });
  }

  // Ends are seldom round, and have no labels. An axis has labels at its few points, else a logarithmic one at 1, or 1, 2 and 5, of a decade.
  function ends(e, log, points) {
    if (!e) return {};
    const round = v => Number(v.toPrecision(1)) === v, label = { color: ink().soft, fontSize: 12, hideOverlap: true, formatter: tick };
    const ticks = [...new Set(points)], few = e[1] / e[0] < 300, many = !ticks.length || ticks.length > 8;
    if (!log && many) return { min: e[0], max: e[1], axisLabel: Object.assign(label, { showMinLabel: round(e[0]), showMaxLabel: round(e[1]) }) };
    if (many) {
      ticks.length = 0;
      for (let d = Math.floor(Math.log10(e[0])); d <= Math.log10(e[1]); d++)
      for (const k of few ? [1, 2, 5] : [1]) if (k * 10 ** d >= e[0] && k * 10 ** d <= e[1]) ticks.push(Number((k * 10 ** d).toPrecision(1)));
    }
    return { min: e[0], max: e[1], axisTick: { customValues: ticks, lineStyle: { color: ink().soft } }, axisLabel: Object.assign(label, { customValues: ticks }) };
  }

  // Bars lie, so that their names are read.
  function bars(c, width) {
    const parts = new Map(), names = c.bars.map(b => [b.group, b.name].filter(t => t).join(", "));
    c.bars.forEach(b => b.parts.forEach(p => parts.set(p.name, p.color)));
    parts.forEach((_, name) => { if (c.bars.every(b => b.parts.every(p => p.name !== name || p.value === 0))) parts.delete(name); });
    const single = c.bars.every(b => b.parts.length === 1);
    // A part that has its bar's name needs no legend.
    const legend = [...parts.keys()].filter(name => c.bars.some(b => b.name !== name && b.parts.some(p => p.name === name)));
    const o = common((legend.length > 1 ? legend : []).concat(c.bars.some(b => b.published !== undefined) ? ["published", ""] : []));
    o.tooltip.trigger = "axis";
    o.tooltip.axisPointer = { type: "shadow" };
    o.tooltip.formatter = found => text(found[0].name) + found.filter(f => f.value !== undefined && f.value !== "-" && f.value !== 0)
      .map(f => "<br>" + marker(f.color) + text((single ? c.y : f.seriesName) + " " + digits(f.data.whole) + (f.data.part ? interval(f.data.part) : "") + (f.data.note ? ", " + f.data.note : ""))).join("");
    const sample = b => b.low === undefined && single ? b.parts[0] : b, negative = c.bars.some(b => b.parts[0].value < 0);
    const furthest = b => { const v = b.parts[0].value, s = sample(b), all = [v].concat(s.runs || (s.low === undefined ? [] : [s.low, s.high]));
      return v < 0 ? Math.min(...all) : Math.max(...all); };
    const total = b => b.parts.reduce((sum, p) => sum + p.value, 0), isCut = b => c.yEnds && total(b) > c.yEnds[1];
    const drawn = (b, p) => isCut(b) ? p.value * c.yEnds[1] / total(b) : p.value; // the parts of a cut bar share its length
    const series = [...parts].map(([name, color]) => ({ type: "bar", name: name, stack: "all", barMaxWidth: 24, itemStyle: { color: shown(color) },
      emphasis: { focus: single ? "none" : "series" }, data: c.bars.map(b => { const p = b.parts.find(q => q.name === name);
        return p ? { value: drawn(b, p), whole: p.value, part: single ? sample(b) : p, note: single ? b.note : undefined } : "-"; }) }));
    if (series.length) series[0].markLine = { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: ink().soft, type: "dashed" },
      data: (c.levels || []).concat(negative ? [0] : []).map(v => ({ xAxis: v })) };
    // Labels cover the limit, which is drawn over bars.
    if (single) series.push({ type: "scatter", silent: true, tooltip: { show: false }, symbolSize: 1, z: 6, itemStyle: { color: "transparent", opacity: 1 },
      data: c.bars.map((b, i) => ({ value: [furthest(b), i], label: { position: b.parts[0].value < 0 ? "left" : "right" } })), label: { show: true, position: "right", color: ink().text, backgroundColor: ink().ground, lineHeight: 15, padding: [0, 3],
        formatter: f => c.bars[f.dataIndex].note || digits(c.bars[f.dataIndex].parts[0].value) } });
    const runs = c.bars.flatMap((b, i) => (sample(b).runs || []).map(v => [v, i]));
    const whiskers = c.bars.flatMap((b, i) => sample(b).low !== undefined && !sample(b).runs ? [[sample(b).low, i], [sample(b).high, i], ["-", i]] : []);
    if (whiskers.length) series.push({ type: "line", symbol: "none", silent: true, data: whiskers, z: 5, lineStyle: { color: ink().text, width: 1.2 } });
    const published = c.bars.flatMap((b, i) => b.published === undefined ? [] : [[b.published, i]]);
    if (published.length) series.push({ type: "scatter", name: "published", symbol: "diamond", symbolSize: 11, silent: true, data: published, z: 6, itemStyle: hollow(ink().soft) });
    if (runs.length) series.push({ type: "scatter", silent: true, data: runs, z: 5, symbolSize: 4, itemStyle: { color: ink().text } });
    const cut = c.bars.flatMap((b, i) => isCut(b) ? [{ value: [c.yEnds[1], i], all: total(b) }] : []);
    if (cut.length) series.push({ type: "scatter", symbol: "triangle", symbolRotate: -90, symbolSize: 10, silent: true, z: 6, data: cut, itemStyle: { color: ink().text },
      label: { show: true, position: "left", color: ink().text, fontSize: 12, backgroundColor: ink().ground, padding: 2, formatter: f => digits(f.data.all) } });
    const left = Math.min(width * 0.36, 12 + 7.2 * Math.max(...names.map(n => n.length)));
    return Object.assign(o, {
      grid: { left: left, right: single ? Math.min(width * 0.3, 7.2 * Math.max(8, ...c.bars.map(b => (b.note || "").length))) : 22, top: o.legend.show === false ? 8 : 34, bottom: 46 },
      xAxis: axis("value", c.logY, { name: c.y + (c.x ? ", by " + c.x : ""), nameLocation: "middle", nameGap: 28, min: negative ? v => v.min - 0.12 * (v.max - v.min) : undefined, axisLabel: { color: ink().soft, fontSize: 12, hideOverlap: true, showMinLabel: !negative, formatter: tick }, max: c.yEnds ? c.yEnds[1] : c.levels ? v => Math.max(v.max, ...c.levels) : undefined }),
      yAxis: axis("category", false, { inverse: true, data: names, axisLine: { onZero: false, lineStyle: { color: ink().soft } }, axisLabel: { color: ink().text, fontSize: 12, width: left - 14, overflow: width < 600 ? "break" : "truncate", lineHeight: 13, interval: 0 } }),
      series: series,
    });
  }

  // White is no change, blue better, red worse.
  function shade(share) {
    const from = scheme.matches ? [0x2a, 0x31, 0x39] : [0xff, 0xff, 0xff], to = share < 0 ? [0xe8, 0x6a, 0x58] : [0x5a, 0x9c, 0xd6];
    const at = i => Math.round(from[i] + Math.min(1, Math.abs(share)) * (to[i] - from[i]));
    return "rgb(" + at(0) + "," + at(1) + "," + at(2) + ")";
  }

  // The longest name of a value has as much room as leaves the cells enough, and is broken into lines beyond.
  const longest = h => 6.6 * Math.max(...h.valuesB.map(v => v.length));
  const heatLeft = (h, width) => Math.min(width * 0.4, 40 + longest(h));

  function heat(c, width, height) {
    const h = c.heat, o = common([]);
    const grid = { left: heatLeft(h, width), right: 10, top: 8, bottom: 96 };
    const size = [(width - grid.left - grid.right) / h.valuesA.length - 2, (height - grid.top - grid.bottom) / h.valuesB.length - 2];
    const full = Math.max(...charts.flatMap(o => o.heat ? o.heat.cells : []).map(x => Math.abs(x.change)), 1e-9), better = h.higher ? 1 : -1;
    const change = x => (x.change > 0 ? "+" : "") + digits(x.change) + " %";
    const names = { color: ink().text, fontSize: 12, lineHeight: 13, interval: 0, overflow: "break" };
    o.tooltip.trigger = "item";
    o.tooltip.formatter = f => { const x = f.data.cell; return text([h.a, h.valuesA[x.x]].join(" ").trim() + ", " + [h.b, h.valuesB[x.y]].join(" ").trim()) + "<br>" +
      text(digits(x.value) + ", " + change(x)); };
    return Object.assign(o, {
      grid: grid,
      title: { text: "White: as configured. " + (h.higher ? "Blue: more, red: less" : "Blue: less, red: more") + ", full at " + digits(full) + " %.",
        left: "center", bottom: 0, textStyle: { color: ink().soft, fontSize: 12, fontWeight: "normal" } },
      xAxis: axis("category", false, { data: h.valuesA, name: h.a, nameLocation: "middle", nameGap: 40, splitLine: { show: false }, axisLabel: Object.assign({ width: size[0] }, names) }),
      yAxis: axis("category", false, { data: h.valuesB, name: h.b, nameLocation: "middle", nameGap: grid.left - 18, splitLine: { show: false },
        axisLabel: Object.assign({ width: grid.left - 30 }, names) }),
      series: [{ type: "scatter", symbol: "rect", symbolSize: size, data: h.cells.map(x => ({ value: [x.x, x.y], cell: x,
          itemStyle: { color: shade(better * x.change / full) } })),
        label: { show: size[0] >= 28, color: ink().text, fontSize: size[0] < 60 ? 10 : 12, lineHeight: 14,
          formatter: f => digits(f.data.cell.value) + (size[0] < 44 ? "" : "\n" + change(f.data.cell)) } }],
    });
  }

  const kind = c => c.heat ? "heat" : c.bars ? "bars" : "lines";
  const heights = {
    lines: c => c.low ? 190 : 320, bars: c => Math.max(150, c.bars.length * (window.innerWidth < 600 && c.bars.some(b => (b.group || "").length + b.name.length > 36) ? 44 : 30) + 90),
    heat: (c, width) => c.heat.valuesB.length * Math.max(40, 13 * Math.ceil(1.3 * longest(c.heat) / (heatLeft(c.heat, width) - 30))) + 110,
  };
  const options = { lines: lines, bars: bars, heat: heat };
  const fine = !window.matchMedia("(pointer: coarse)").matches; // a finger's drag scrolls the page

  function draw(c) {
    const element = document.getElementById(c.id), height = heights[kind(c)](c, element.clientWidth);
    element.style.height = height + "px";
    const live = echarts.getInstanceByDom(element) || echarts.init(element);
    live.resize();
    live.setOption(options[kind(c)](c, element.clientWidth, height), true);
    if (fine && kind(c) === "lines") live.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
    return live;
  }

  const drawn = charts.map(c => ({ chart: c, width: 0, live: null }));
  function redraw(all) {
    drawn.forEach(d => {
      const width = document.getElementById(d.chart.id).clientWidth;
      if (!all && width === d.width) return;
      const first = d.live === null;
      d.width = width;
      d.live = draw(d.chart);
      if (first && kind(d.chart) === "lines") d.live.getZr().on("dblclick", () => draw(d.chart));
    });
    document.documentElement.dataset.charts = String(drawn.length);
  }
  redraw(true);
  window.addEventListener("resize", () => redraw(false));
  scheme.addEventListener("change", () => redraw(true));
})();
