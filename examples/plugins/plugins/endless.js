// Never returns.
function onOrder() {
  for (;;);
}
