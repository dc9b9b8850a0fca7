import { addMonths, differenceInBusinessDays, format, formatDistance, parseISO } from 'date-fns';
import { de } from 'date-fns/locale';
const start = parseISO('2024-01-31T10:00:00Z');
console.log(format(addMonths(start, 1), 'yyyy-MM-dd'), differenceInBusinessDays(addMonths(start, 1), start));
console.log(format(start, 'EEEE, d. MMMM', { locale: de }), formatDistance(start, addMonths(start, 3)));
