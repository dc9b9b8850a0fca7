import { Circle, type Shape } from './shapes.ts';

const shapes: Shape[] = [1, 2, 3].map((radius: number) => new Circle(radius));
console.log(shapes.map((s) => `${s.name} ${s.area()}`).join('\n'));
