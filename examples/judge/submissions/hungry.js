const all = [];
for (;;) all.push(Buffer.alloc(1 << 20, 1));
