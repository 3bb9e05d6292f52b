// What the page does itself. Loaded before the terminal's script, which opens windows: for addresses that stand in
// recorded text, too. Here only a file that the app gives out comes through, as a download.
"use strict";

window.open = (url) => {
  if (typeof url === "string" && url.startsWith(`${window.location.origin}/download/`)) {
    window.location.assign(url);
  }
  return null;
};
window.confirm = () => false;

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("again").addEventListener("click", () => window.location.assign("/"));
});
