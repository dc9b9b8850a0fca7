for (;;) console.log('let me think about this for a moment');
