// The graph of a run: coloured by prediction, error, truth, or by what the chosen node hears of every
// other, S_ij(tau) = |(A^tau)_ij| ||W^tau||, computed here in double precision.
"use strict";
const explorer = (() => {
  const holder = document.getElementById("explorer-data");
  if (!holder) return null;
  const data = JSON.parse(holder.textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const MOST_NEAR = 250; // nodes of a neighbourhood that is drawn where the whole is too large
  const WIDTH = 720;

  // ---- data ----

  function bytesOf(text) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
    return bytes;
  }
  const arrayOf = (Type, text) => new Type(bytesOf(text).buffer);

  const count = data.nodes;
  const numbers = data.numbers ? arrayOf(Int32Array, data.numbers) : null; // in the whole graph
  const numberOf = (i) => (numbers ? numbers[i] : i);
  const nameOf = (i) => (data.ids ? data.ids[i] : String(numberOf(i)));

  // Rows of A: per row how many neighbours were left out, how many entries follow, and the columns
  // as differences; of a symmetric operator the columns from the diagonal on.
  function readOperator() {
    const bytes = bytesOf(data.entries);
    let at = 0;
    const next = () => {
      let value = 0;
      for (let shift = 1; ; shift *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * shift;
        if (byte < 128) return value;
      }
    };
    const from = [];
    const to = [];
    const missing = new Int32Array(count);
    for (let i = 0; i < count; ++i) {
      missing[i] = next();
      const entries = next();
      let column = data.symmetric ? i : 0;
      for (let e = 0; e < entries; ++e) {
        column += next();
        from.push(i);
        to.push(column);
      }
    }
    const size = new Int32Array(count);
    from.forEach((i, e) => {
      ++size[i];
      if (data.symmetric && to[e] !== i) ++size[to[e]];
    });
    const rowPtr = new Int32Array(count + 1);
    for (let i = 0; i < count; ++i) rowPtr[i + 1] = rowPtr[i] + size[i];
    const col = new Int32Array(rowPtr[count]);
    const value = new Float64Array(rowPtr[count]);
    const stored = data.values ? arrayOf(Float64Array, data.values) : null;
    const place = rowPtr.slice(0, count);
    from.forEach((i, e) => {
      const j = to[e];
      const entry = stored ? stored[e] : 1 / Math.sqrt((size[i] + missing[i]) * (size[j] + missing[j]));
      col[place[i]] = j;
      value[place[i]++] = entry;
      if (data.symmetric && j !== i) {
        col[place[j]] = i;
        value[place[j]++] = entry;
      }
    });
    return { rowPtr, col, value, missing };
  }
  const operator = readOperator();

  // Whom a node is joined with, whichever way.
  function readNeighbours() {
    const near = Array.from({ length: count }, () => []);
    for (let i = 0; i < count; ++i) {
      for (let e = operator.rowPtr[i]; e < operator.rowPtr[i + 1]; ++e) {
        const j = operator.col[e];
        if (j === i || operator.value[e] === 0) continue;
        near[i].push(j);
        if (!data.symmetric) near[j].push(i);
      }
    }
    return near;
  }
  const near = readNeighbours();

  function hopsFrom(starts) {
    const hops = new Int32Array(count).fill(-1);
    const queue = [...starts];
    for (const start of starts) hops[start] = 0;
    for (let head = 0; head < queue.length; ++head) {
      for (const other of near[queue[head]]) {
        if (hops[other] >= 0) continue;
        hops[other] = hops[queue[head]] + 1;
        queue.push(other);
      }
    }
    return hops;
  }
  // Where the page holds a part of the graph only: a way that leaves it and comes back takes at least
  // hops to the rim on either side and two more. Below that the numbers are exact.
  const rim = [...operator.missing.keys()].filter((i) => operator.missing[i] > 0);
  const toRim = rim.length ? hopsFrom(rim) : null;
  const isExact = (i, j, tau) => !toRim || toRim[i] < 0 || toRim[j] < 0 || tau < toRim[i] + toRim[j] + 2;

  // ---- influence ----

  const taus = data.blocks[0].norm.length - 1;
  const rows = new Map(); // of targets asked for
  // Row `target` of A^0, A^1, ...: what of every node arrives there.
  function rowsOf(target) {
    if (rows.has(target)) return rows.get(target);
    const { rowPtr, col, value } = operator;
    let now = new Float64Array(count);
    now[target] = 1;
    const all = [now];
    for (let tau = 1; tau <= taus; ++tau) {
      const next = new Float64Array(count);
      for (let i = 0; i < count; ++i) {
        const here = now[i];
        if (here === 0) continue;
        for (let e = rowPtr[i]; e < rowPtr[i + 1]; ++e) next[col[e]] += here * value[e];
      }
      all.push(next);
      now = next;
    }
    if (rows.size >= 4) rows.delete(rows.keys().next().value);
    rows.set(target, all);
    return all;
  }
  const influence = (source, target, tau, block) =>
    Math.abs(rowsOf(target)[tau][source]) * data.blocks[block].norm[tau];

  // ---- state and what is drawn ----

  const state = { by: "influence", target: data.target, source: data.source, tau: data.hops, block: 0 };
  const colours = data.colours.map((c) => ({ ...c, value: arrayOf(Float32Array, c.value) }));
  let drawn = []; // nodes
  let places = new Map(); // node -> [x, y] in units of the drawing
  let circles = new Map();
  let cursor = null;
  const svg = byId("ex-svg");

  function valueOf(i) {
    if (state.by === "influence") {
      return isExact(i, state.target, state.tau) ? influence(i, state.target, state.tau, state.block) : NaN;
    }
    return colours[Number(state.by)].value[i];
  }

  // ---- places ----

  // Distances in the plane follow the hops: a few sweeps of stress majorisation from a spiral.
  function layOut(nodes) {
    const index = new Map(nodes.map((node, k) => [node, k]));
    const size = nodes.length;
    const far = new Float64Array(size * size);
    nodes.forEach((start, k) => {
      const hops = new Map([[start, 0]]);
      const queue = [start];
      for (let head = 0; head < queue.length; ++head) {
        for (const other of near[queue[head]]) {
          if (!index.has(other) || hops.has(other)) continue;
          hops.set(other, hops.get(queue[head]) + 1);
          queue.push(other);
        }
      }
      for (const [node, steps] of hops) far[k * size + index.get(node)] = steps;
    });
    const x = new Float64Array(size);
    const y = new Float64Array(size);
    for (let k = 0; k < size; ++k) {
      const radius = Math.max(far[k], 0.3) + 0.01 * k / size;
      x[k] = radius * Math.cos(2.399963 * k);
      y[k] = radius * Math.sin(2.399963 * k);
    }
    for (let sweep = 0; sweep < 60; ++sweep) {
      for (let i = 0; i < size; ++i) {
        let sumX = 0, sumY = 0, total = 0;
        for (let j = 0; j < size; ++j) {
          const wanted = far[i * size + j];
          if (j === i || wanted === 0) continue;
          const dx = x[i] - x[j], dy = y[i] - y[j];
          const stretch = wanted / Math.max(Math.hypot(dx, dy), 1e-9);
          const weight = 1 / (wanted * wanted);
          sumX += weight * (x[j] + stretch * dx);
          sumY += weight * (y[j] + stretch * dy);
          total += weight;
        }
        if (total > 0) { x[i] = sumX / total; y[i] = sumY / total; }
      }
    }
    return nodes.map((_, k) => [x[k], -y[k]]);
  }

  function nearest(centre) {
    const nodes = [centre];
    const seen = new Set(nodes);
    for (let head = 0; head < nodes.length && nodes.length < MOST_NEAR; ++head) {
      for (const other of near[nodes[head]]) {
        if (seen.has(other) || nodes.length >= MOST_NEAR) continue;
        seen.add(other);
        nodes.push(other);
      }
    }
    return nodes;
  }

  // Edges that are drawn apart, and what the legend calls them.
  const MARKED = [["bridges", "bridge: the only way"], ["harmful", "better without"], ["advised", "advised, not there"]]
    .filter(([kind]) => data[kind] && data[kind].length);
  for (const [kind, name] of MARKED) {
    const item = document.createElement("li");
    item.className = `mark-${kind}`;
    item.textContent = name;
    byId("ex-marks").append(item);
  }

  // The limit of a pair, and how far from it (A^tau)_ij can still be: sqrt(D_i D_j) / vol and
  // lambda^tau sqrt((1 - q_ii)(1 - q_jj)).
  const degree = data.lambda === undefined ? null
    : data.degree ? arrayOf(Float64Array, data.degree)
    : Float64Array.from({ length: count }, (_, i) => operator.rowPtr[i + 1] - operator.rowPtr[i]);
  function limitOf(i, j) {
    if (!degree) return null;
    const hops = hopsFrom([i]);
    if (hops[j] < 0) return null;
    let volume = 0;
    hops.forEach((h, k) => { if (h >= 0) volume += degree[k]; });
    const q = Math.sqrt(degree[i] * degree[j]) / volume;
    const spread = Math.sqrt((1 - degree[i] / volume) * (1 - degree[j] / volume));
    return { q, error: (tau) => (data.lambda > 0 ? data.lambda ** tau * spread : NaN) };
  }

  function make(tag, attributes, parent) {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
  }

  function draw(centre) {
    let raw;
    if (data.places) {
      const packed = arrayOf(Uint16Array, data.places);
      drawn = [...Array(count).keys()];
      raw = drawn.map((i) => [packed[2 * i] / 65535, -packed[2 * i + 1] / 65535]);
    } else {
      drawn = nearest(centre);
      raw = layOut(drawn);
    }
    const xs = raw.map((p) => p[0]), ys = raw.map((p) => p[1]);
    const range = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    const [lowX, highX] = range(xs), [lowY, highY] = range(ys);
    const pad = 18;
    const scale = Math.min((WIDTH - 2 * pad) / Math.max(highX - lowX, 1e-9), (WIDTH - 2 * pad) / Math.max(highY - lowY, 1e-9));
    const tall = Math.max((highY - lowY) * scale + 2 * pad, 90);
    const shiftX = (WIDTH - (highX - lowX) * scale) / 2, shiftY = (tall - (highY - lowY) * scale) / 2;
    places = new Map(drawn.map((node, k) => [node, [shiftX + (xs[k] - lowX) * scale, shiftY + (ys[k] - lowY) * scale]]));
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${tall.toFixed(1)}`);
    svg.replaceChildren();
    circles = new Map();
    let path = "";
    let edges = 0;
    for (const i of drawn) {
      for (const j of near[i]) {
        if (j <= i && data.symmetric) continue;
        const a = places.get(i), b = places.get(j);
        if (!b || ++edges > 20000) continue;
        path += `M${a[0].toFixed(1)} ${a[1].toFixed(1)}L${b[0].toFixed(1)} ${b[1].toFixed(1)}`;
      }
    }
    byId("ex-edges").hidden = edges <= 20000;
    if (edges <= 20000) make("path", { class: "edges", d: path }, svg);
    for (const [kind] of MARKED) {
      let marked = "";
      for (const [i, j] of data[kind]) {
        const a = places.get(i), b = places.get(j);
        if (a && b) marked += `M${a[0].toFixed(1)} ${a[1].toFixed(1)}L${b[0].toFixed(1)} ${b[1].toFixed(1)}`;
      }
      if (marked) make("path", { class: `edges ${kind}`, d: marked }, svg);
    }
    const radius = Math.max(2.2, Math.min(9, 0.42 * Math.sqrt((WIDTH * tall) / drawn.length)));
    const group = make("g", {}, svg);
    for (const i of drawn) {
      const [x, y] = places.get(i);
      circles.set(i, make("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius.toFixed(1), "data-node": numberOf(i), "data-index": i }, group));
    }
    state.radius = radius;
    cursor = null;
    show();
  }

  // ---- colours ----

  const RAMP = ["#faf3e5", "#fece9a", "#ffa56b", "#fa7751", "#e54e58", "#c42e64", "#9a1d6b", "#6d1a65", "#411a50", "#1d162a"];
  const NONE = "#9aa0a8";
  // What is strong stands out: dark on light, light on dark.
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const zero = () => (dark.matches ? "#33414f" : "#c5ddf3");
  const CLASSES = ["#0b62a8", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7a5195"];
  function ramp(share) {
    const strength = Math.max(0, Math.min(1, share));
    const at = (dark.matches ? 1 - strength : strength) * (RAMP.length - 1);
    const low = Math.min(Math.floor(at), RAMP.length - 2);
    const mix = (k) => {
      const a = parseInt(RAMP[low].slice(k, k + 2), 16), b = parseInt(RAMP[low + 1].slice(k, k + 2), 16);
      return Math.round(a + (b - a) * (at - low));
    };
    return `rgb(${mix(1)},${mix(3)},${mix(5)})`;
  }
  const short = (v) => (Number.isNaN(v) ? "-" : v === 0 ? "0" : Math.abs(v) >= 1e-3 && Math.abs(v) < 1e5 ? String(Number(v.toPrecision(4))) : v.toExponential(3));

  function paint() {
    const classes = state.by === "influence" ? null : colours[Number(state.by)].classes;
    const values = drawn.map(valueOf);
    const scale = byId("ex-scale");
    scale.replaceChildren();
    const key = (colour, text) => {
      const item = document.createElement("span");
      item.className = "key";
      const swatch = document.createElement("i");
      swatch.style.background = colour;
      item.append(swatch, text);
      scale.append(item);
    };
    let colourOf;
    if (classes && classes.length) {
      colourOf = (v) => (Number.isNaN(v) ? NONE : CLASSES[v % CLASSES.length]);
      classes.slice(0, 16).forEach((name, c) => key(CLASSES[c % CLASSES.length], name));
    } else {
      const finite = values.filter((v) => Number.isFinite(v));
      const positive = finite.filter((v) => v > 0);
      const most = (list, pick) => list.reduce((a, b) => pick(a, b));
      const isLog = positive.length > 1 && positive.length + finite.filter((v) => v === 0).length === finite.length &&
        state.by === "influence" && most(positive, Math.max) > 30 * most(positive, Math.min);
      const used = isLog ? positive : finite;
      const low = used.length ? most(used, Math.min) : 0, high = used.length ? most(used, Math.max) : 1;
      const share = (v) => (high === low ? 0.5 : isLog ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
      const hasZero = state.by === "influence" && finite.some((v) => v === 0);
      colourOf = (v) => (!Number.isFinite(v) ? NONE : hasZero && v === 0 ? zero() : ramp(share(v)));
      const bar = document.createElement("span");
      bar.className = "ramp";
      bar.style.background = `linear-gradient(to right, ${[...Array(10).keys()].map((k) => ramp(k / 9)).join(", ")})`;
      const lowest = hasZero && !isLog ? most(positive.length ? positive : [0], Math.min) : low;
      scale.append(short(isLog ? low : lowest), bar, short(high) + (isLog ? " (logarithmic)" : ""));
      if (hasZero) key(zero(), "nothing arrives");
    }
    if (values.some((v) => !Number.isFinite(v))) key(NONE, state.by === "influence" ? "not known here" : "none");
    drawn.forEach((i, k) => {
      const circle = circles.get(i);
      circle.setAttribute("fill", colourOf(values[k]));
      circle.setAttribute("data-value", values[k]);
    });
  }

  // ---- words, curve, table ----

  function describe(i) {
    const parts = [];
    for (const c of colours) {
      const v = c.value[i];
      parts.push(`${c.name}: ${Number.isNaN(v) ? "none" : c.classes.length ? c.classes[v] : short(v)}`);
    }
    return parts.join("; ");
  }

  function drawCurve() {
    const box = byId("ex-curve");
    box.replaceChildren();
    const w = 400, h = 230, left = 58, right = 10, top = 10, bottom = 38;
    const { target, source, block } = state;
    const all = rowsOf(target);
    const norm = data.blocks[block].norm;
    const whole = (tau) => !toRim || toRim[target] < 0 || tau <= toRim[target];
    const lines = [
      { name: "sum over all nodes", colour: "c0", y: all.map((row, tau) => (whole(tau) ? row.reduce((s, v) => s + Math.abs(v), 0) * norm[tau] : NaN)) },
      { name: "largest of another node", colour: "c1", y: all.map((row, tau) => (whole(tau) ? row.reduce((s, v, j) => (j === target ? s : Math.max(s, Math.abs(v))), 0) * norm[tau] : NaN)) },
    ];
    if (source >= 0) {
      lines.push({ name: `from ${nameOf(source)}`, colour: "c3", y: all.map((row, tau) => (isExact(source, target, tau) ? Math.abs(row[source]) * norm[tau] : NaN)) });
    }
    const limit = source >= 0 ? limitOf(target, source) : null;
    byId("ex-limit-note").hidden = !limit;
    if (limit) {
      lines.push({ name: "its limit", colour: "cg dash", y: norm.map((size) => limit.q * size) });
      if (data.lambda > 0) {
        lines.push({ name: "bounds", colour: "c3 dash", y: norm.map((size, tau) => (limit.q + limit.error(tau)) * size) });
        lines.push({ name: "", colour: "c3 dash", y: norm.map((size, tau) => (limit.q - limit.error(tau)) * size) });
      }
    }
    const shown = lines.flatMap((line) => line.y).filter((v) => v > 0 && Number.isFinite(v));
    if (!shown.length) return;
    const high = Math.log10(shown.reduce((a, b) => Math.max(a, b))), low = Math.min(Math.log10(shown.reduce((a, b) => Math.min(a, b))), high - 0.5);
    const x = (tau) => left + (taus ? tau / taus : 0.5) * (w - left - right);
    const y = (v) => top + ((high - Math.log10(v)) / (high - low)) * (h - top - bottom);
    const chart = make("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `Influence on ${nameOf(target)} by hops, logarithmic` });
    const step = Math.max(1, Math.ceil((high - low) / 5));
    for (let e = Math.ceil(low); e <= high + 1e-9; e += step) {
      make("path", { class: "grid", d: `M${left} ${y(10 ** e).toFixed(1)}H${w - right}` }, chart);
      make("text", { x: left - 6, y: y(10 ** e) + 4, "text-anchor": "end" }, chart).textContent = e === 0 ? "1" : `1e${e}`;
    }
    const stride = Math.max(1, Math.ceil(taus / 8));
    for (let tau = 0; tau <= taus; tau += stride) make("text", { x: x(tau), y: h - bottom + 17, "text-anchor": "middle" }, chart).textContent = tau;
    make("text", { x: (left + w - right) / 2, y: h - 5, "text-anchor": "middle", class: "axis" }, chart).textContent = "hops";
    for (const line of lines) {
      let path = "", open = false;
      line.y.forEach((v, tau) => {
        if (!(v > 0 && Number.isFinite(v))) { open = false; return; }
        path += `${open ? "L" : "M"}${x(tau).toFixed(1)} ${y(v).toFixed(1)}`;
        if (!open) path += "h.01";
        open = true;
      });
      make("path", { class: `line ${line.colour}`, d: path }, chart);
    }
    make("path", { class: "mark", id: "ex-curve-mark", d: `M${x(state.tau).toFixed(1)} ${top}V${h - bottom}` }, chart);
    const legend = document.createElement("ul");
    legend.className = "legend";
    for (const line of lines.filter((one) => one.name)) {
      const item = document.createElement("li");
      item.className = line.colour;
      item.textContent = line.name;
      legend.append(item);
    }
    box.append(chart, legend);
  }

  function fillTop() {
    const body = byId("ex-top").tBodies[0];
    body.replaceChildren();
    const { target, tau, block } = state;
    const hops = hopsFrom([target]);
    const order = [];
    for (let j = 0; j < count; ++j) {
      const v = isExact(j, target, tau) ? influence(j, target, tau, block) : 0;
      if (v > 0) order.push([v, j]);
    }
    order.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    for (const [v, j] of order.slice(0, 12)) {
      const row = body.insertRow();
      const name = row.insertCell();
      const button = document.createElement("button");
      button.className = "do";
      button.type = "button";
      button.textContent = nameOf(j);
      button.title = "its share of the curve";
      button.addEventListener("click", () => { state.source = j; byId("ex-source").value = nameOf(j); show(); });
      name.append(button);
      for (const text of [hops[j], short(v)]) {
        const cell = row.insertCell();
        cell.className = "n";
        cell.textContent = text;
      }
    }
    return order.length;
  }

  function show() {
    const { target, tau, block } = state;
    paint();
    svg.querySelectorAll(".ring, .cursor").forEach((ring) => ring.remove());
    const ringAt = (i, kind) => {
      const place = places.get(i);
      if (place) make("circle", { class: kind, cx: place[0], cy: place[1], r: state.radius + 3 }, svg);
    };
    ringAt(target, "ring");
    if (state.source >= 0 && state.source !== target) ringAt(state.source, "ring");
    if (cursor !== null) ringAt(cursor, "cursor");
    byId("ex-hops").value = tau;
    byId("ex-tau").textContent = tau;
    const heard = fillTop();
    drawCurve();
    const known = describe(target);
    let text = `Node ${nameOf(target)}${known ? ` (${known})` : ""}: of ${heard} nodes something arrives in exactly ${tau} hops`;
    if (data.blocks.length > 1) text += `, ${data.blocks[block].name}`;
    text += ".";
    if (state.source >= 0) {
      text += isExact(state.source, target, tau)
        ? ` From ${nameOf(state.source)}: ${short(influence(state.source, target, tau, block))}.`
        : ` From ${nameOf(state.source)}: not known here, ways may lead outside of the part that this page holds.`;
    }
    byId("ex-status").textContent = text;
  }

  // ---- what people do ----

  function find(text) {
    const wanted = text.trim();
    for (let i = 0; i < count; ++i) if (nameOf(i) === wanted) return i;
    return -1;
  }
  function choose(i) {
    state.target = i;
    byId("ex-node").value = nameOf(i);
    if (!places.has(i)) draw(i);
    else show();
  }
  function read(input, use) {
    const text = input.value;
    const i = find(text);
    const unknown = i < 0 && text.trim() !== "";
    input.setAttribute("aria-invalid", String(unknown));
    if (unknown) byId("ex-status").textContent = `There is no node ${text.trim()} ${numbers ? "in the part of the graph that this page holds" : "in this graph"}.`;
    else use(i);
  }
  svg.addEventListener("click", (event) => {
    const index = event.target.getAttribute && event.target.getAttribute("data-index");
    if (index === null) return;
    if (event.shiftKey) {
      state.source = Number(index);
      byId("ex-source").value = nameOf(state.source);
      show();
    } else choose(Number(index));
  });
  const tip = byId("ex-tip");
  svg.addEventListener("pointermove", (event) => {
    const index = event.target.getAttribute && event.target.getAttribute("data-index");
    if (index === null) { tip.textContent = "\u00a0"; return; }
    const i = Number(index);
    tip.textContent = `Node ${nameOf(i)}: ${[describe(i), isExact(i, state.target, state.tau) ? `influence: ${short(influence(i, state.target, state.tau, state.block))}` : ""].filter(Boolean).join("; ")}`;
  });
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  svg.addEventListener("keydown", (event) => {
    const here = cursor === null ? state.target : cursor;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(here);
      return;
    }
    const way = ARROWS[event.key];
    if (!way || !places.has(here)) return;
    event.preventDefault();
    const [x, y] = places.get(here);
    let best = here, least = Infinity;
    for (const i of drawn) {
      const [dx, dy] = [places.get(i)[0] - x, places.get(i)[1] - y];
      const ahead = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (i === here || ahead <= 0 || ahead + 2.5 * aside >= least) continue;
      least = ahead + 2.5 * aside;
      best = i;
    }
    cursor = best;
    show();
    byId("ex-status").textContent = `At node ${nameOf(best)}: ${[describe(best), `colour: ${short(valueOf(best))}`].filter(Boolean).join("; ")}. Enter chooses it.`;
  });
  byId("ex-by").addEventListener("change", (event) => { state.by = event.target.value; show(); });
  byId("ex-hops").addEventListener("input", (event) => { state.tau = Number(event.target.value); show(); });
  if (byId("ex-block")) byId("ex-block").addEventListener("change", (event) => { state.block = Number(event.target.value); show(); });
  byId("ex-node").addEventListener("change", (event) => read(event.target, (i) => { if (i >= 0) choose(i); }));
  byId("ex-source").addEventListener("change", (event) => read(event.target, (i) => { state.source = i; show(); }));
  if (byId("ex-centre")) byId("ex-centre").addEventListener("click", () => draw(state.target));

  const jumps = byId("ex-worst").querySelector(".jumps");
  for (const [source, target] of data.worst || []) {
    const button = document.createElement("button");
    button.className = "do";
    button.type = "button";
    button.textContent = `${nameOf(source)} \u2192 ${nameOf(target)}`;
    button.addEventListener("click", () => {
      state.source = source;
      byId("ex-source").value = nameOf(source);
      state.tau = Math.min(taus, data.worstHops);
      choose(target);
    });
    jumps.append(button);
  }
  byId("ex-worst-hops").textContent = data.worstHops;
  byId("ex-worst").hidden = !(data.worst && data.worst.length);

  dark.addEventListener("change", show);

  draw(state.target);
  return { data, state, operator, rowsOf, influence, isExact, limitOf, find };
})();
