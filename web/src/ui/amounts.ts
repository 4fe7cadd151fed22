/** Amounts in words, as the reader's language has them; and the days by which they are reckoned. */
const WHOLE = new Intl.NumberFormat();
const SHORT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent" });
const DOLLARS = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol" });
const FEW_CENTS = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", maximumSignificantDigits: 2 });

/** `$1.31`; of a few cents, two digits that count: `$0.027`. */
export function dollars(amount: number): string {
  return amount > 0 && amount < 0.1 ? FEW_CENTS.format(amount) : DOLLARS.format(amount);
}

/** What was used, in dollars: `$1.31`; where the price of some calls is unknown, `more than $1.31`; of all, `cost unknown`. */
export function cost(used: { dollars: number; unpriced_calls?: number }): string {
  if (!used.unpriced_calls) return dollars(used.dollars);
  return used.dollars > 0 ? `more than ${dollars(used.dollars)}` : "cost unknown";
}

/** What was used of a limit: `$1.31 of $5.00`; where no price is known, `cost unknown, limit $5.00`. */
export function costOf(used: { dollars: number; unpriced_calls?: number }, limit: number): string {
  return `${cost(used)}${used.unpriced_calls && !used.dollars ? ", limit" : " of"} ${dollars(limit)}`;
}

/** `182K` */
export function short(count: number): string {
  return SHORT.format(count);
}

/** `812 bytes`, `48 kB` */
export function bytes(size: number): string {
  const [unit, by] = size < 1_000 ? ["byte", 1] : size < 1_000_000 ? ["kilobyte", 1_000] : size < 1_000_000_000 ? ["megabyte", 1_000_000] : ["gigabyte", 1_000_000_000];
  return new Intl.NumberFormat(undefined, { style: "unit", unit: unit as string, unitDisplay: by === 1 ? "long" : "short", maximumFractionDigits: 1 }).format(size / (by as number));
}

/** `182,310` */
export function whole(count: number): string {
  return WHOLE.format(count);
}

/** `75%`; where nothing is known, a dash. */
export function percent(share: number | null): string {
  if (share === null) return "–";
  return share > 0 && share < 0.01 ? `< ${PERCENT.format(0.01)}` : PERCENT.format(share);
}

/** The first day of this month, by UTC, as days are reckoned here. */
export function monthStart(now: Date = new Date()): string {
  return `${now.toISOString().slice(0, 7)}-01`;
}

/** A day so many days before today, by UTC. */
export function daysAgo(days: number, now: number = Date.now()): string {
  return new Date(now - days * 86_400_000).toISOString().slice(0, 10);
}
