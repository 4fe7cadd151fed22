/** Amounts in words. */
const DOLLARS = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol" });
const SMALL = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", maximumSignificantDigits: 2 });
const SHORT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** `$0.31`; less than a cent with two digits that count. */
export function dollars(amount: number): string {
  return amount > 0 && amount < 0.01 ? SMALL.format(amount) : DOLLARS.format(amount);
}

/** `182K` */
export function short(count: number): string {
  return SHORT.format(count);
}

export function percent(share: number | null): string {
  return share === null ? "–" : `${Math.round(share * 100)} %`;
}

/** The first day of this month, by UTC, as days are reckoned here. */
export function monthStart(now: Date = new Date()): string {
  return `${now.toISOString().slice(0, 7)}-01`;
}

/** A day so many days before today, by UTC. */
export function daysAgo(days: number, now: number = Date.now()): string {
  return new Date(now - days * 86_400_000).toISOString().slice(0, 10);
}
