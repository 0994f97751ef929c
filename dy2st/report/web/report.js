"use strict";
(() => {
  const make = (name, properties = {}, ...content) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...content);
    return element;
  };

  // Light and dark: the system's choice until the reader makes one, which is kept where the browser lets a page keep it.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("dy2st-theme", value);
      return localStorage.getItem("dy2st-theme");
    } catch {
      return null;
    }
  };
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const show = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(isDark()));
  };
  button.textContent = "Dark theme";
  button.hidden = false;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    stored(theme);
    show(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
  show(stored());

  // Tables: a button in each heading sorts, a field above a long table filters.
  const value = (row, column) => row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [parseFloat(a), parseFloat(b)];
    const numbers = a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y);
    return numbers ? x - y : a.localeCompare(b, undefined, { numeric: true });
  };
  const filters = new Map();
  for (const table of document.querySelectorAll("table.sorts")) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];
    if (body.rows.length > 1) {
      headings.forEach((heading, column) => {
        const sort = make("button", { type: "button" }, ...heading.childNodes);
        heading.append(sort);
        sort.addEventListener("click", () => {
          const down = heading.getAttribute("aria-sort") === "ascending";
          for (const each of headings) each.removeAttribute("aria-sort");
          heading.setAttribute("aria-sort", down ? "descending" : "ascending");
          const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column)));
          body.append(...(down ? rows.reverse() : rows));
        });
      });
    }
    if (body.rows.length < 8 && !table.closest(".nodes")) continue;
    const field = make("input", { type: "search", autocomplete: "off" });
    const told = make("span", { className: "muted" });
    told.setAttribute("role", "status");
    const state = { text: "", line: "" };
    const apply = () => {
      let shown = 0;
      for (const row of body.rows) {
        const fits = row.textContent.toLowerCase().includes(state.text);
        row.hidden = !(fits && (!state.line || row.dataset.line === state.line));
        shown += row.hidden ? 0 : 1;
      }
      const some = state.text || state.line;
      told.textContent = some ? `${shown} of ${body.rows.length} rows` : `${body.rows.length} rows`;
      all.hidden = !state.line;
    };
    const all = make("button", { type: "button", hidden: true }, "All lines");
    field.addEventListener("input", () => {
      state.text = field.value.toLowerCase();
      apply();
    });
    all.addEventListener("click", () => {
      state.line = "";
      for (const row of document.querySelectorAll("tr.selected")) row.classList.remove("selected");
      apply();
      field.focus();
    });
    const label = make("label", {}, `Filter ${table.caption.textContent} `, field);
    table.closest(".scroll").before(make("div", { className: "tools" }, label, all, told));
    filters.set(table, (line) => {
      state.line = line;
      state.text = field.value = "";
      apply();
    });
    apply();
  }

  // The nodes of one line: a link in the source shows those alone.
  for (const link of document.querySelectorAll("a.of-line[data-line]")) {
    link.addEventListener("click", (event) => {
      const row = document.getElementById(link.hash.slice(1));
      const details = row && row.closest("details");
      if (!details) return;
      event.preventDefault();
      details.open = true;
      for (const each of document.querySelectorAll("tr.selected")) each.classList.remove("selected");
      link.closest("tr").classList.add("selected");
      filters.get(row.closest("table"))(link.dataset.line);
      row.focus({ preventScroll: true });
      details.scrollIntoView({ block: "nearest" });
    });
  }

  // Of many targets, those that failed alone.
  const failures = document.getElementById("failures");
  if (failures) {
    failures.hidden = false;
    failures.addEventListener("click", () => {
      const only = root.classList.toggle("only-failures");
      failures.setAttribute("aria-pressed", String(only));
    });
  }

  // A link opens what it leads to: a folded target, the inside of a box.
  const open = () => {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    const folded = [];
    for (let each = place; each; each = each.parentElement) if (each.tagName === "DETAILS" && !each.open) folded.push(each);
    for (const each of folded) each.open = true;
    if (folded.length) place.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  // Of the parts of the page, the one that is being read.
  const links = [...document.querySelectorAll("header nav a")];
  const parts = links.map((link) => document.getElementById(link.hash.slice(1)));
  if (links.length > 1) {
    const mark = () => {
      const read = parts.findLastIndex((part) => part.getBoundingClientRect().top < innerHeight / 3);
      links.forEach((link, place) => {
        if (place === Math.max(read, 0)) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  }

  // What scrolls sideways says so while there is more to the right.
  const watch = (pane) => {
    const told = make("span", { className: "more-right", hidden: true }, "more to the right →");
    told.setAttribute("aria-hidden", "true");
    pane.after(told);
    const update = () => {
      const more = pane.scrollLeft + pane.clientWidth < pane.scrollWidth - 4;
      pane.classList.toggle("more", more);
      told.hidden = !more;
    };
    pane.addEventListener("scroll", update, { passive: true });
    new ResizeObserver(update).observe(pane);
    update();
  };
  for (const pane of document.querySelectorAll(".scroll")) watch(pane);
})();
