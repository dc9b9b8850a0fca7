// Asks for more than the shop gives.
const onOrder = order => order.total * 2;
