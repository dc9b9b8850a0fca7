import { DateTime, Duration, Interval } from 'luxon';
const there = DateTime.fromISO('2024-03-10T01:30', { zone: 'America/New_York' });
console.log(there.plus({ hours: 1 }).toISO(), there.setZone('Asia/Tokyo').toLocaleString(DateTime.DATETIME_FULL));
console.log(Duration.fromObject({ minutes: 135 }).shiftTo('hours', 'minutes').toHuman(), Interval.after(there, { days: 2 }).length('hours'));
console.log(DateTime.fromISO('2024-05-01', { locale: 'fr' }).toFormat('cccc d LLLL'));
