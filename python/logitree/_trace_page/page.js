// The trace page: follows view.js in one script.
const data = JSON.parse(document.getElementById("data").textContent);
const view = traceView(document.getElementById("view"), {
  picked: (i) => {
    try { history.replaceState(null, "", `#token-${i + 1}`); } catch { /* A frame may forbid it. */ }
  },
});
const model = document.getElementById("model");
model.textContent = model.title = data.about.model || data.vocabulary.name;
document.getElementById("stats").replaceChildren(...statsList(statsOf(data)));
themeButton(document.getElementById("theme"));
view.draw(data);
const asked = /^#token-(\d+)$/.exec(location.hash);
if (asked) view.pick(Number(asked[1]) - 1, true);
root.dataset.ready = String(data.token.length);
