// A program whose one thread stands in a method that the JIT has inlined into
// another. It was run on .NET 9.0.7 with DOTNET_RichDebugInfo=1, which makes the
// JIT keep such calls, and with DOTNET_TieredCompilation=0.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

static class Program
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Park()
    {
        Console.WriteLine(Environment.StackTrace);
        while (true)
            Thread.Sleep(1000000);
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Inner(int n)
    {
        if (n > 1)
            Park();
        return n + 1;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Middle(int n)
    {
        int m = n * 3;
        return Inner(m + 1) + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Outer(int n)
    {
        int a = Middle(n);
        return a + 2;
    }

    static void Main(string[] args)
    {
        int n = Outer(args.Length + 5);
        Console.WriteLine(n);
    }
}
