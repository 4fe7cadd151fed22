/**
 * The half of the session's secret that is not in the cookie. Browsers send cookies to every port of a host, so that the
 * server wants this as well: the storage of a page is for its own origin only.
 */
const NAME = "page key";
const HEADER = "Denizen-Page-Key";

let known: string | null = null;

export function keepPageKey(key: string | null): void {
  known = key;
  try {
    if (known === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, known);
  } catch {
    // Not allowed: then it lives as long as the page.
  }
}

/** The header to send with each request of the session. */
export function pageKeyHeader(): Record<string, string> {
  let key = known;
  try {
    key = localStorage.getItem(NAME) ?? known; // another tab may have signed in anew
  } catch {
    // Not allowed.
  }
  return key === null ? {} : { [HEADER]: key };
}
