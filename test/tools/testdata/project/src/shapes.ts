import round from 'round';

export interface Shape {
  name: string;
  area(): number;
}

export class Circle implements Shape {
  readonly name: string = 'circle';
  #radius: number;

  constructor(radius: number) {
    this.#radius = radius;
  }

  area(): number {
    return round(Math.PI * this.#radius ** 2, 2);
  }
}
