/* The source of a report: everything is in the page, compressed. */

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

class EmbeddedSource {
  constructor(columns, cells) {
    this.columns = columns;
    this.cells = cells;
    this.total = (columns.idx || []).length;
    this.hits = [];
    this.packed = [...document.querySelectorAll("script.chunk")];
    this.open = new Map();
    this.words = null;
    this.filters = [
      ...(cells.length > 1 ? [{ name: "cell", label: "All cells", options: cells.map((name, number) => [String(number), name]) }] : []),
      { name: "standing", label: "Right and wrong", options: STANDINGS },
      { name: "outcome", label: "All outcomes", options: this.options("outcome") },
      ...["category", "failure"].map((name) => ({ name, label: name === "category" ? "All categories" : "All failures", options: this.options(name) })).filter((filter) => filter.options.length > 0),
      { name: "sort", label: "Sort", options: SORTS },
    ];
  }

  options(name) {
    const counts = new Map();
    for (const value of this.columns[name] || []) if (value !== "") counts.set(value, (counts.get(value) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 500).map(([value, count]) => [value, `${value} (${show.count(count)})`]);
  }

  at(number) {
    return Object.fromEntries(Object.keys(this.columns).map((name) => [name, this.columns[name][number]]));
  }

  async chunk(number) {
    if (!this.open.has(number)) {
      if (this.open.size >= 8) this.open.delete(this.open.keys().next().value);
      this.open.set(number, inflate(this.packed[number].textContent));
    }
    return this.open.get(number);
  }

  /* All texts in lower case, made when somebody first searches. */
  async searchable() {
    if (this.words) return this.words;
    const words = [];
    const c = this.columns;
    for (let number = 0; number < this.packed.length; number++) {
      for (const detail of await inflate(this.packed[number].textContent)) {
        const i = words.length;
        const asked = (detail.messages || []).map((item) => typeof item.content === "string" ? item.content : JSON.stringify(item.content));
        words.push([c.id[i], c.category[i], c.failure[i], c.expected[i], c.answer[i], ...asked, detail.reasoning || "", detail.answer || "", detail.error || "", JSON.stringify(detail.tool_calls || []), JSON.stringify(detail.scoring || {})].join("\n").toLowerCase());
      }
    }
    return (this.words = words);
  }

  async query({ text, sort, standing: word, cell, ...equal }) {
    const c = this.columns;
    const words = text ? await this.searchable() : null;
    const wanted = text ? text.toLowerCase().split(/\s+/) : [];
    const tests = Object.entries(equal).filter(([, value]) => value);
    const hits = [];
    for (let i = 0; i < this.total; i++) {
      if (cell && c.cell[i] !== Number(cell)) continue;
      if (tests.some(([name, value]) => c[name][i] !== value)) continue;
      if (word && standing({ outcome: c.outcome[i], value: c.value[i] }) !== word) continue;
      if (words && !wanted.every((part) => words[i].includes(part))) continue;
      hits.push(i);
    }
    if (sort) {
      const down = sort.startsWith("-");
      const column = c[down ? sort.slice(1) : sort];
      hits.sort((a, b) => {
        if (column[a] === null || column[b] === null) return (column[a] === null) - (column[b] === null) || a - b;
        return (down ? column[b] - column[a] : column[a] - column[b]) || a - b;
      });
    }
    this.hits = hits;
    return { count: hits.length, total: this.total };
  }

  async row(index) { return index < this.hits.length ? this.at(this.hits[index]) : null; }
  async detail(row) { return [{ row, detail: (await this.chunk(row.chunk))[row.place] }]; }
  render(row) { return sampleRow(row, this.cells.length > 1 ? this.cells[row.cell] : ""); }
  title(row) { return `${this.cells[row.cell]} · ${row.id}`; }

  async find(cell, idx, repeat) {
    const c = this.columns;
    for (let i = 0; i < this.total; i++) if (c.cell[i] === cell && c.idx[i] === idx && c.repeat[i] === repeat) return this.at(i);
    return null;
  }
}

(async () => {
  setUpTheme();
  const cells = JSON.parse(document.getElementById("cells").textContent);
  const source = new EmbeddedSource(await inflate(document.getElementById("index").textContent), cells);
  const browser = new SampleBrowser(source);
  await setUpTabs(browser, (...place) => source.find(...place));
  await browser.refresh();
  document.documentElement.dataset.ready = "yes";
})();
