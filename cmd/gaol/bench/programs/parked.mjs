// A small program that waits: it is weighed while it does.
console.log('parked');
setTimeout(() => {}, 1e9);
