// Days and moments in the zone of the reader: arithmetic on the calendar, never on clock time.

import { local, momentOf as momentIn } from "/pages/grid/values.js";
import { language, zone } from "./store.js";

const DAY = 86_400_000;
/** The day and the time that the clock of the reader shows at a moment. */
export const wallOf = (moment) => local(moment, zone);

/** The moment at which the clock of the reader shows a day and a time. */
export const momentOf = (day, time) => momentIn(day, time, zone);

export const plusDays = (day, count) => new Date(Date.parse(`${day}T00:00:00Z`) + count * DAY).toISOString().slice(0, 10);
export const daysBetween = (first, last) => Math.round((Date.parse(`${last}T00:00:00Z`) - Date.parse(`${first}T00:00:00Z`)) / DAY);
export const today = () => wallOf(Date.now()).day;

/** Weeks start on Monday, as they do in filters. */
export function weekOf(day) {
  const weekday = (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
  return plusDays(day, -weekday);
}

export const firstOfMonth = (day) => `${day.slice(0, 7)}-01`;

export function plusMonths(day, count) {
  const [year, month] = day.split("-").map(Number);
  return new Date(Date.UTC(year, month - 1 + count, 1)).toISOString().slice(0, 10);
}

const named = (style) => new Intl.DateTimeFormat(language, { ...style, timeZone: "UTC" });
const month = named({ month: "long", year: "numeric" });
const weekday = named({ weekday: "short" });
const whole = named({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const short = named({ day: "numeric", month: "short" });
const at = (day) => new Date(`${day}T00:00:00Z`);

export const monthText = (day) => month.format(at(day));
export const weekdayText = (day) => weekday.format(at(day));
export const wholeDay = (day) => whole.format(at(day));
export const shortDay = (day) => short.format(at(day));

/** A time on the clock of the reader as seconds, which count on evenly over all days. */
export function stampOf(field, value) {
  const { day, time } = field.form === "moment" ? wallOf(value) : { day: value, time: "00:00" };
  return Date.parse(`${day}T${time}Z`) / 1000;
}

/** The day and the time of a stamp. */
export function stampParts(stamp) {
  const text = new Date(stamp * 1000).toISOString();
  return { day: text.slice(0, 10), time: text.slice(11, 19) };
}

export const clockText = (stamp) => stampParts(stamp).time.slice(0, 5);

/** The value that a field has at a stamp. */
export function valueAt(field, stamp) {
  const { day, time } = stampParts(stamp);
  return field.form === "moment" ? momentOf(day, time) : day;
}
