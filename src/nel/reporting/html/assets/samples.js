"use strict";
/* The list of samples: a source answers queries, this file shows what it gives. Texts become text nodes, never markup. */

function el(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const show = {
  count: (value) => Number(value).toLocaleString("en-US"),
  score(value) {
    if (value === null || value === undefined) return "–";
    return Number.isInteger(value) ? show.count(value) : value.toFixed(3);
  },
  duration(ms) {
    if (!ms) return "";
    if (ms < 1000) return `${Math.round(ms)}ms`;
    return ms < 60000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.floor(ms / 60000)}m${String(Math.round((ms % 60000) / 1000)).padStart(2, "0")}s`;
  },
};

/* One word for how an attempt ended. */
function standing(row) {
  if (row.outcome !== "scored") return row.outcome;
  if (row.value === null) return "unscored";
  return row.value >= 1 ? "right" : row.value <= 0 ? "wrong" : "partial";
}

function setUpTheme() {
  const key = "nel-theme";
  const root = document.documentElement;
  let stored = null;
  try { stored = localStorage.getItem(key); } catch { /* a file may have no storage */ }
  if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem(key, root.dataset.theme); } catch { /* likewise */ }
  });
}

/* Any JSON value for a person: texts as they are, objects as lists of their fields. */
function tree(value) {
  if (Array.isArray(value)) {
    if (value.every((item) => item === null || typeof item !== "object")) return el("pre", {}, value.map(plain).join(", "));
    return el("div", {}, ...value.map(tree));
  }
  if (value !== null && typeof value === "object") {
    const list = el("dl", { class: "tree" });
    for (const [name, child] of Object.entries(value)) {
      if (!present(child)) continue;
      list.append(el("dt", {}, name), el("dd", {}, tree(child)));
    }
    return list;
  }
  return el("pre", {}, plain(value));
}

function present(value) {
  return value !== null && value !== undefined && value !== "" && !(typeof value === "object" && Object.keys(value).length === 0);
}

/* A metric that has nothing but its value, as that value. */
function simple(metric) {
  if (metric === null || typeof metric !== "object") return metric;
  const kept = Object.entries(metric).filter(([, value]) => present(value));
  return kept.length === 1 && kept[0][0] === "value" ? metric.value : Object.fromEntries(kept);
}

function characters(text) {
  return `${show.count(text.length)} character${text.length === 1 ? "" : "s"}`;
}

function plain(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function message(role, body, extra) {
  return el("section", { class: `message ${role}` }, el("header", {}, el("span", {}, role), el("span", {}, extra || "")), body);
}

function contentOf(content) {
  if (content === null || content === undefined) return el("pre", {});
  if (typeof content === "string") return el("pre", {}, content);
  if (!Array.isArray(content)) return el("div", {}, tree(content));
  return el("div", {}, ...content.map((part) => {
    const url = part && part.image_url && (part.image_url.url || part.image_url);
    if (typeof url === "string" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(url)) return el("img", { src: url, alt: "image" });
    if (part && typeof part.text === "string") return el("pre", {}, part.text);
    return tree(part);
  }));
}

function toolCall(call) {
  const made = call.function || call;
  let given = made.arguments;
  try { if (typeof given === "string") given = JSON.parse(given); } catch { /* shown as it is */ }
  return message("tool call", el("div", {}, tree(given === undefined ? call : given)), made.name || "");
}

function steps(documents) {
  return documents.flatMap((doc) => (doc.steps || [doc]).map((step, number) =>
    message("step", el("div", {}, tree(step)), `${step.source || ""} ${step.step_id ?? number + 1}`)));
}

function section(title, ...nodes) {
  const kept = nodes.flat().filter(Boolean);
  return kept.length ? [el("h4", {}, title), ...kept] : [];
}

/* One attempt with everything that is known of it. */
function renderSide({ title, row, detail }) {
  const side = el("div", { class: "side" });
  if (title) side.append(el("h4", {}, title));
  if (!detail) { side.append(el("p", { class: "muted" }, "There is no such attempt in this run.")); return side; }
  const word = standing(row);
  side.append(el("div", { class: "side-head" },
    el("span", { class: `pill ${word}` }, word),
    el("span", {}, `reward ${show.score(row.value)}`),
    row.failure ? el("span", {}, row.failure) : "",
    row.category ? el("span", {}, row.category) : "",
    row.repeat ? el("span", {}, `repeat ${row.repeat}`) : "",
    row.tokens ? el("span", {}, `${show.count(row.tokens)} tokens`) : "",
    row.latency ? el("span", {}, show.duration(row.latency)) : ""));
  if (detail.cut) side.append(el("p", { class: "note" }, `Shortened. The whole is in ${detail.cut}.`));
  side.append(el("div", { class: "verdict" },
    el("div", {}, el("span", {}, "Extracted"), el("pre", {}, detail.extracted === undefined || detail.extracted === null ? "–" : plain(detail.extracted))),
    el("div", {}, el("span", {}, "Expected"), el("pre", {}, detail.expected === undefined || detail.expected === null ? "–" : plain(detail.expected)))));
  if (detail.error) side.append(message("error", el("pre", {}, detail.error)));
  side.append(...section("Asked", (detail.messages || []).map((item) => [
    message(item.role || "message", contentOf(item.content)), ...(item.tool_calls || []).map(toolCall)]).flat()));
  side.append(...section("Answered",
    detail.reasoning ? message("reasoning", el("pre", {}, detail.reasoning), characters(detail.reasoning)) : null,
    (detail.tool_calls || []).map(toolCall),
    detail.answer ? message("assistant", el("pre", {}, detail.answer), characters(detail.answer)) : null));
  const scoring = { ...(detail.scoring || {}) };
  const metrics = { ...(detail.values || {}), ...(scoring.metrics || {}) };
  delete metrics.reward;
  delete scoring.metrics;
  const flat = Object.fromEntries(Object.entries(metrics).map(([name, found]) => [name, simple(found)]));
  const score = { ...scoring, ...flat };
  side.append(...section("Scored", Object.values(score).some(present) ? tree(score) : null));
  if (detail.trajectory && detail.trajectory.length) side.append(...section("Steps", steps(detail.trajectory)));
  for (const [name, value] of [["Problem", detail.metadata], ["Files", detail.files]]) {
    if (value && Object.keys(value).length) side.append(...section(name, tree(value)));
  }
  return side;
}

const ROW = 48;
const TALLEST = 8e6; /* pixels: browsers cut taller elements */

class SampleBrowser {
  constructor(source) {
    this.source = source;
    this.root = document.getElementById("browser");
    this.list = document.getElementById("list");
    this.spacer = this.list.querySelector(".spacer");
    this.pane = document.getElementById("detail");
    this.search = document.getElementById("search");
    this.query = {};
    this.total = 0;
    this.selected = -1;
    this.asked = 0;
    this.shown = new Map();
    this.setFilters(source.filters);
    let timer = 0;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => { this.query.text = this.search.value.trim(); this.refresh(); }, 120);
    });
    this.list.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.list);
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /* The filters with their options; what was chosen stays chosen. */
  setFilters(filters) {
    document.getElementById("filters").replaceChildren();
    for (const filter of filters) this.addFilter(filter);
  }

  choose(name, value) {
    const select = document.getElementById(`filter-${name}`);
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }

  addFilter({ name, label, options }) {
    const select = el("select", { "aria-label": label, id: `filter-${name}` });
    if (name !== "sort") select.append(el("option", { value: "" }, label));
    for (const [value, text] of options) select.append(el("option", { value }, text));
    select.value = this.query[name] || "";
    if (select.value !== (this.query[name] || "")) { select.value = ""; this.query[name] = ""; }
    select.classList.toggle("active", name !== "sort" && select.value !== "");
    select.addEventListener("change", () => {
      this.query[name] = select.value;
      select.classList.toggle("active", name !== "sort" && select.value !== "");
      this.refresh();
    });
    document.getElementById("filters").append(select);
  }

  async refresh(keep = false) {
    const asked = ++this.asked;
    const count = document.getElementById("count");
    const waiting = setTimeout(() => { count.textContent = "Searching…"; }, 150);
    let answer;
    try {
      answer = await this.source.query({ ...this.query });
    } catch (error) {
      answer = { count: 0, total: 0, note: error.message };
    } finally {
      clearTimeout(waiting);
    }
    if (asked !== this.asked) return;
    this.total = answer.count;
    count.textContent = answer.count === answer.total ? `${show.count(answer.total)} samples` : `${show.count(answer.count)} of ${show.count(answer.total)}`;
    const note = document.getElementById("note");
    note.hidden = !answer.note;
    note.textContent = answer.note || "";
    this.shown.clear();
    this.spacer.replaceChildren();
    if (!this.total) this.spacer.append(el("p", { class: "empty" }, "Nothing matches."));
    this.spacer.style.height = `${this.height()}px`;
    if (!keep) { this.selected = -1; this.list.scrollTop = 0; }
    this.draw();
  }

  height() { return Math.min(this.total * ROW, TALLEST); }

  /* Index of the row at the top; beyond TALLEST the scroll bar is a scale. */
  first() {
    const room = this.list.clientHeight;
    if (this.total * ROW <= TALLEST) return Math.floor(this.list.scrollTop / ROW);
    return Math.floor((this.list.scrollTop / Math.max(1, this.height() - room)) * (this.total - Math.floor(room / ROW)));
  }

  scrollFor(index) {
    if (this.total * ROW <= TALLEST) return index * ROW;
    const room = this.list.clientHeight;
    return (index / Math.max(1, this.total - Math.floor(room / ROW))) * (this.height() - room);
  }

  draw() {
    if (!this.total || !this.list.clientHeight) return;
    const first = this.first();
    const from = Math.max(0, first - 8);
    const to = Math.min(this.total, first + Math.ceil(this.list.clientHeight / ROW) + 8);
    const scaled = this.total * ROW > TALLEST;
    for (const [index, node] of this.shown) {
      if (index < from || index >= to) { node.remove(); this.shown.delete(index); }
    }
    for (let index = from; index < to; index++) {
      let node = this.shown.get(index);
      if (!node) {
        node = el("div", { class: "row", role: "option", onclick: () => this.open(index) });
        this.shown.set(index, node);
        this.spacer.append(node);
        this.fill(node, index);
      }
      node.style.top = `${scaled ? this.list.scrollTop + (index - first) * ROW : index * ROW}px`;
      node.classList.toggle("selected", index === this.selected);
      node.setAttribute("aria-selected", index === this.selected);
    }
  }

  async fill(node, index) {
    const asked = this.asked;
    const row = await this.source.row(index);
    if (asked === this.asked && row) node.replaceChildren(...this.source.render(row));
  }

  select(index) {
    if (!this.total) return;
    this.selected = Math.max(0, Math.min(this.total - 1, index));
    const first = this.first();
    const visible = Math.floor(this.list.clientHeight / ROW);
    if (this.selected < first || this.selected * ROW < this.list.scrollTop && this.total * ROW <= TALLEST) this.list.scrollTop = this.scrollFor(this.selected);
    else if (this.selected >= first + visible) this.list.scrollTop = this.scrollFor(this.selected - visible + 1);
    this.draw();
    if (!this.pane.hidden) this.open(this.selected);
  }

  async open(index) {
    this.selected = index;
    const row = await this.source.row(index);
    if (!row || this.selected !== index) return;
    await this.openRow(row, () => this.selected === index);
  }

  async openRow(row, wanted = () => true) {
    let sides;
    try { sides = await this.source.detail(row); } catch (error) { sides = [{ row, detail: { error: error.message } }]; }
    if (!wanted()) return;
    const close = el("button", { type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: () => this.close() }, "×");
    this.pane.replaceChildren(
      el("div", { class: "detail-head" }, el("h2", {}, this.source.title(row)), close),
      el("div", { class: "sides" }, ...sides.map(renderSide)));
    this.pane.hidden = false;
    this.pane.scrollTop = 0;
    this.root.classList.add("with-detail");
    this.draw();
  }

  close() {
    this.pane.hidden = true;
    this.pane.replaceChildren();
    this.root.classList.remove("with-detail");
    this.draw();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.list.clientHeight && this.pane.hidden) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && event.target === this.search) { event.target.blur(); this.select(0); }
      return;
    }
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    if (event.key in moves) this.select(this.selected + moves[event.key]);
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(this.total - 1);
    else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") { if (this.selected >= 0) this.open(this.selected); }
    else if (event.key === "Escape") this.close();
    else if (event.key === "/") { this.search.focus(); this.search.select(); }
    else return;
    event.preventDefault();
  }
}

/* A line of the list, of one run. */
function sampleRow(row, cellName) {
  const word = standing(row);
  return [
    el("span", { class: `mark-dot ${word}`, title: word }),
    el("span", { class: "id" }, row.repeat ? `${row.id} · ${row.repeat}` : row.id, el("small", {}, row.category || cellName || "")),
    el("span", { class: "text" }, row.question || "–", el("small", {}, row.outcome === "error" ? row.failure || "error" : row.answer)),
    el("span", { class: "num score" }, show.score(row.value)),
    el("span", { class: "num extra muted" }, row.tokens ? show.count(row.tokens) : ""),
    el("span", { class: "num extra muted" }, show.duration(row.latency)),
  ];
}

const SORTS = [["", "In order"], ["value", "Lowest score"], ["-value", "Highest score"], ["-latency", "Slowest"], ["latency", "Fastest"], ["-tokens", "Most tokens"], ["tokens", "Fewest tokens"]];
const STANDINGS = [["right", "Right (1)"], ["partial", "Between"], ["wrong", "Wrong (0)"]];

/* The tabs: `#overview`, `#samples`, and `#s/cell/problem/repeat`, which opens an attempt. */
function setUpTabs(browser, find) {
  async function follow() {
    const hash = location.hash.slice(1);
    const samples = hash === "samples" || hash.startsWith("s/");
    for (const [name, on] of [["overview", !samples], ["samples", samples]]) {
      document.getElementById(name).hidden = !on;
      document.getElementById(`tab-${name}`).setAttribute("aria-selected", on);
    }
    if (samples) browser.draw();
    if (hash.startsWith("cell-")) document.getElementById(hash)?.scrollIntoView();
    if (hash.startsWith("s/")) {
      const row = await find(...hash.slice(2).split("/").map(Number));
      if (row) await browser.openRow(row);
    }
  }
  addEventListener("hashchange", follow);
  return follow();
}
