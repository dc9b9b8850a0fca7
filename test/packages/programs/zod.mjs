import { z } from 'zod';
const User = z.object({ name: z.string().min(2), email: z.email(), age: z.coerce.number().int().positive() });
console.log(User.parse({ name: 'Ada', email: 'ada@example.com', age: '36' }));
const bad = User.safeParse({ name: 'A', email: 'none', age: -1 });
console.log(bad.success, bad.error.issues.map((i) => i.path.join('.')));
console.log(JSON.stringify(z.toJSONSchema(User)));
