// A small program that waits while its memory is measured.
console.log('parked');
setTimeout(() => {}, 1e9);
