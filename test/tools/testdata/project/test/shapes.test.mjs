import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Circle } from '../dist/shapes.js';

test('the area of a circle', () => {
  assert.equal(new Circle(2).area(), 12.57);
});
