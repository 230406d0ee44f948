// What axe-core misses in the theme's pages: names for the search and for the copy buttons' landmarks, and the keyboard's way
// into what scrolls. The theme makes some of these elements after the page has loaded.
function fix() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((box) => box.setAttribute("tabindex", "0"));
}
new MutationObserver(fix).observe(document.body, { childList: true, subtree: true });
fix();
