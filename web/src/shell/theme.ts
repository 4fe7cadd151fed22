/** Light, dark, or as the reader's system has it. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let printing = false;

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

/** The page looks as chosen, and follows the system if nothing is. Paper is white. */
export function applyTheme(): void {
  const chosen = printing ? "light" : chosenTheme();
  document.documentElement.dataset["theme"] = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
  for (const listener of listeners) listener();
}

dark.addEventListener("change", applyTheme);
for (const event of ["beforeprint", "afterprint"]) {
  window.addEventListener(event, () => {
    printing = event === "beforeprint";
    applyTheme();
  });
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, chosenTheme);
}
