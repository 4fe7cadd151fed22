/** The client for what is asked of the server and kept for a while. */
import { type InvalidateOptions, type InvalidateQueryFilters, notifyManager, QueryClient, type QueryKey } from "@tanstack/react-query";
import { ApiError } from "./api.ts";

/** How long ago something may have been asked for to be shown without asking again. */
const FRESH_MILLISECONDS = 5_000;

/** One for a tab. From now on, whatever is known anew is drawn before anything else happens. */
export function openQueries(): Queries {
  // The library's own way is a timer later. Until then a box that was ticked would stand there as it was before, and
  // what is shown ahead of the server's answer, and ends with it, would give way to what was before.
  notifyManager.setScheduler(queueMicrotask);
  return new Queries({
    defaultOptions: {
      queries: {
        staleTime: FRESH_MILLISECONDS,
        retry: (failures, error) => failures < 2 && error instanceof ApiError && error.passing,
      },
    },
  });
}

export class Queries extends QueryClient {
  /** What matches is asked for again: also what is under way for the first time, whose answer may be of before. */
  override async invalidateQueries<Key extends QueryKey = QueryKey>(filters?: InvalidateQueryFilters<Key>, options?: InvalidateOptions): Promise<void> {
    const first = this.getQueryCache()
      .findAll({ ...filters, fetchStatus: "fetching" } as InvalidateQueryFilters)
      .filter((query) => query.state.data === undefined);
    await super.invalidateQueries(filters, options);
    // The library lets them go on, and takes their answer for a new one.
    if (first.length) await super.invalidateQueries({ predicate: (query) => first.includes(query) }, options);
  }
}
