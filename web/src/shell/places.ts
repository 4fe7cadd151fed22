import type { SpaceState } from "../denizen/store";
import { isDirectSpace } from "./direct";

/** The sections of the sidebar, in its order: what many share, conversations of two, panels. */
export function sectionsOf(spaces: readonly SpaceState[], me: string): { shared: SpaceState[]; direct: SpaceState[]; panels: SpaceState[] } {
  const panels = spaces.filter(isPanel);
  const others = spaces.filter((each) => !isPanel(each));
  return { shared: others.filter(({ info }) => !isDirectSpace(info, me)), direct: others.filter(({ info }) => isDirectSpace(info, me)), panels };
}

/** Whether advisors answer there. */
export function isPanel({ info }: SpaceState): boolean {
  return info.kind === "panel";
}

/** Its address. */
export function pathOf(space: SpaceState): string {
  return `/${isPanel(space) ? "panels" : "s"}/${space.info.id}`;
}

/** The space, or panel, that an address leads to. */
export function spaceAt(path: string): string | undefined {
  return /^\/(?:s|panels)\/([^/]+)/.exec(path)?.[1];
}
