"use strict";
// Keys on a dialogue's page: j and k go on in the list around it, or to the neighbour where there is none.
addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey) return;
  const way = event.key === "j" ? "next" : event.key === "k" ? "before" : "";
  if (!way) return;
  if (parent !== window) { parent.postMessage("weft:" + way, "*"); return; }
  const link = document.getElementById(way);
  if (link) location.href = link.href;
});
