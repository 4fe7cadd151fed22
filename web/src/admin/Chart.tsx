/** Bars by day, one group on top of the other. Loaded when it is needed: the library is large. */
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { dollars, short } from "../ui/amounts";
import { useTheme } from "../shell/theme";
import css from "./admin.module.css";
import { type Measure, type Series, stacked } from "./series";

const HEIGHT = 240;
/** Colours that can be told apart in light and in dark, as custom properties of the chart. */
const HUES = 7;
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

export default function Chart({ days, series, measure }: { days: string[]; series: Series[]; measure: Measure }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const heights = useMemo(() => stacked(series), [series]);
  useEffect(() => {
    const box = place.current!;
    const plot = draw(box, days, series, heights, measure);
    const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [days, series, heights, measure, theme]);
  return (
    <figure className={css.chart}>
      {/* The table beneath says the same in numbers. */}
      <div ref={place} className={css.chartPlace} aria-hidden />
      {series.length > 1 && (
        <figcaption className={css.legend}>
          {series.map((each, at) => (
            <span key={each.name}>
              <i className={css[`hue${at % HUES}`]} />
              {each.name}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function draw(box: HTMLElement, days: string[], series: Series[], heights: number[][], measure: Measure): uPlot {
  const look = getComputedStyle(box);
  const colour = (name: string): string => look.getPropertyValue(name).trim();
  const bars = uPlot.paths.bars!({ size: [0.7, 48], radius: 0.15, gap: 0 });
  const text = (value: number): string => (measure === "dollars" ? dollars(value) : short(value));
  const font = `12px ${colour("--sans")}`;
  // The highest is drawn first, and what is lower over it.
  const order = heights.map((_, at) => at).reverse();
  return new uPlot(
    {
      width: box.clientWidth || 600,
      height: HEIGHT,
      padding: [12, 8, 0, 0],
      legend: { show: false },
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: [-0.6, days.length - 0.4] }, y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] } },
      axes: [
        {
          stroke: colour("--ink-faint"),
          font,
          grid: { show: false },
          ticks: { show: false },
          space: 64,
          size: 30,
          incrs: [1, 2, 7, 14, 30, 60],
          values: (_, marks) => marks.map((mark) => (days[mark] === undefined ? "" : DAY.format(new Date(days[mark])))),
        },
        {
          stroke: colour("--ink-faint"),
          font,
          size: 56,
          grid: { stroke: colour("--line"), width: 1 },
          ticks: { show: false },
          values: (_, marks) => marks.map(text),
        },
      ],
      series: [
        {},
        ...order.map((at) => ({
          label: series[at]!.name,
          fill: colour(`--hue${at % HUES}`),
          stroke: colour(`--hue${at % HUES}`),
          width: 0,
          paths: bars,
          points: { show: false },
        })),
      ],
      plugins: [tip(days, series, text)],
    },
    [days.map((_, at) => at), ...order.map((at) => heights[at]!)],
    box,
  );
}

/** What a bar says when one points at it. */
function tip(days: string[], series: Series[], text: (value: number) => string): uPlot.Plugin {
  const label = document.createElement("div");
  label.className = css.tip ?? "";
  label.hidden = true;
  return {
    hooks: {
      init: (plot) => plot.over.append(label),
      setCursor: (plot) => {
        const at = plot.cursor.idx;
        const sum = at === null || at === undefined ? 0 : series.reduce((all, each) => all + each.values[at]!, 0);
        label.hidden = at === null || at === undefined || sum === 0 || (plot.cursor.left ?? -1) < 0;
        if (label.hidden) return;
        const parts = series.filter((each) => each.values[at!]! > 0).map((each) => (series.length > 1 ? `${each.name} ${text(each.values[at!]!)}` : text(each.values[at!]!)));
        label.textContent = [DAY.format(new Date(days[at!]!)), ...parts].join("\n");
        const left = plot.valToPos(at!, "x");
        label.style.left = `${left}px`;
        label.dataset["side"] = left > plot.over.clientWidth / 2 ? "left" : "right";
      },
    },
  };
}
