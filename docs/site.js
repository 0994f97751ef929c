"use strict";
// Tables that scroll sideways are reached with the keyboard too.
document$.subscribe(() => {
  for (const pane of document.querySelectorAll(".md-typeset__scrollwrap")) pane.tabIndex = 0;
});
