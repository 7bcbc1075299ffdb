// The chart is made when all its parts are there.
for (const root of document.querySelectorAll(".gantt")) {
  root.chart = new Gantt(root, new GanttData(JSON.parse(document.getElementById("gantt-data").textContent)));
}
