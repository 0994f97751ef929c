"use strict";
// What the theme leaves without a name gets one, for screen readers; tables that scroll sideways are reached with the keyboard.
document$.subscribe(() => {
  for (const pane of document.querySelectorAll(".md-typeset__scrollwrap")) pane.tabIndex = 0;
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  nameBarsOfCode();
});

// The theme adds a bar with a button to each block of code, some time after the page is there.
function nameBarsOfCode() {
  document.querySelectorAll("nav.md-code__nav").forEach((bar, index) => {
    bar.setAttribute("aria-label", `Code block ${index + 1}`);
  });
}
new MutationObserver(nameBarsOfCode).observe(document.body, { childList: true, subtree: true });
