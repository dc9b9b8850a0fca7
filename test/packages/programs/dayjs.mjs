import dayjs from 'dayjs';
import tz from 'dayjs/plugin/timezone.js';
import utc from 'dayjs/plugin/utc.js';
dayjs.extend(utc);
dayjs.extend(tz);
console.log(dayjs.tz('2024-06-01 12:00', 'Europe/Berlin').toISOString(), dayjs('2024-01-31').add(1, 'month').format('DD/MM/YYYY'));
