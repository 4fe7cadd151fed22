import type { ReactNode } from "react";
import css from "./ui.module.css";

interface GaugeProps {
  label: ReactNode;
  value: number;
  max: number;
  /** What stands at its right; by default value and max. */
  text?: ReactNode;
  tone?: "accent" | "good" | "warn" | "bad";
}

/** How much of something is used. By default it warns from 80 %, and is bad from 100 %. */
export function Gauge({ label, value, max, text, tone }: GaugeProps): ReactNode {
  const share = max > 0 ? Math.min(value / max, 1) : 0;
  const shown = tone ?? (share >= 1 ? "bad" : share >= 0.8 ? "warn" : "accent");
  return (
    <div className={css.gauge}>
      <div className={css.gaugeText}>
        <span>{label}</span>
        <span>{text ?? `${value.toLocaleString()} of ${max.toLocaleString()}`}</span>
      </div>
      <svg
        className={css.gaugeTrack}
        viewBox="0 0 100 4"
        preserveAspectRatio="none"
        role="meter"
        aria-label={typeof label === "string" ? label : "Used"}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(value, max)}
      >
        <rect width="100" height="4" />
        <rect width={share * 100} height="4" className={css[shown]} />
      </svg>
    </div>
  );
}
