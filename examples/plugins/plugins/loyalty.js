// Gives 5 percent to customers with ten visits, and remembers what it has given.
let given = 0;

function onOrder(order) {
  const discount = shop.visits(order.customer) >= 10 ? order.total * 0.05 : 0;
  given += discount;
  console.log('given so far:', given);
  return discount;
}
