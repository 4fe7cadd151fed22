/** The space, or panel, that an address leads to. */
export function spaceAt(path: string): string | undefined {
  return /^\/(?:s|panels)\/([^/]+)/.exec(path)?.[1];
}
