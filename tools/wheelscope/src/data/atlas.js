// Hides the projects whose row does not have every word that is searched for.
const field = document.getElementById("search");
const rows = [...document.querySelectorAll("tbody tr")];
function search() {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  const shown = rows.filter((row) => !row.hidden).length;
  document.getElementById("count").textContent = `${shown} project${shown === 1 ? "" : "s"}`;
  history.replaceState(null, "", field.value ? `#${encodeURIComponent(field.value)}` : location.pathname);
}
field.value = decodeURIComponent(location.hash.slice(1));
field.addEventListener("input", search);
if (field.value) search();
