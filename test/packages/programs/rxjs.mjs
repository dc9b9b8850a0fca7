import { from, interval, lastValueFrom } from 'rxjs';
import { map, reduce, take, toArray } from 'rxjs/operators';
console.log(await lastValueFrom(interval(5).pipe(take(4), map((n) => n * n), toArray())), await lastValueFrom(from([1, 2, 3]).pipe(reduce((a, b) => a + b))));
