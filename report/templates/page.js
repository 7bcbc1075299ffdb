// The theme button, and details opened for printing.
(() => {
  const themes = ["", "light", "dark"];
  const button = document.querySelector("button.theme");
  button?.addEventListener("click", () => {
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    button.textContent = next || "theme";
    dispatchEvent(new Event("themechange"));
  });
})();
