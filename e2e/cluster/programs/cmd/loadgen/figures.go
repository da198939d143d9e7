// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

type proc struct {
	name string
	pid  int
}

func procs(s string) (r []proc) {
	for _, x := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
		k, v, _ := strings.Cut(x, "=")
		pid, err := strconv.Atoi(v)
		check(err)
		r = append(r, proc{k, pid})
	}
	return
}

func cpuOf(ps []proc) map[string]float64 {
	r := map[string]float64{}
	for _, p := range ps {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
		if _, rest, ok := strings.Cut(string(b), ") "); ok {
			f := strings.Fields(rest)
			u, _ := strconv.ParseFloat(f[11], 64)
			s, _ := strconv.ParseFloat(f[12], 64)
			r[p.name] = (u + s) / 100
		}
	}
	return r
}

func rssOf(ps []proc) map[string]int {
	r := map[string]int{}
	for _, p := range ps {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		for _, l := range strings.Split(string(b), "\n") {
			if f := strings.Fields(l); len(f) > 1 && f[0] == "VmRSS:" {
				kb, _ := strconv.Atoi(f[1])
				r[p.name] = kb / 1024
			}
		}
	}
	return r
}

func samplePeaks(ps []proc) (stop func(), peaks func() map[string]int) {
	done, m, mu := make(chan struct{}), map[string]int{}, sync.Mutex{}
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
				mu.Lock()
				for k, v := range rssOf(ps) {
					m[k] = max(m[k], v)
				}
				mu.Unlock()
			}
		}
	}()
	return func() { close(done) }, func() map[string]int { mu.Lock(); defer mu.Unlock(); return m }
}

func stats(x []float64) map[string]float64 {
	x = slices.DeleteFunc(x, func(v float64) bool { return v < 0 }) // negative: never seen
	if len(x) == 0 {
		return nil
	}
	sort.Float64s(x)
	q := func(p float64) float64 { return round(x[int(math.Ceil(p*float64(len(x))))-1]) }
	return map[string]float64{"min": round(x[0]), "median": q(.5), "p95": q(.95), "max": round(x[len(x)-1])}
}

// busy: CPU seconds of all processes since boot
func busy() (s float64) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line)[1:] {
		if x, _ := strconv.ParseFloat(f, 64); i != 3 && i != 4 && i < 8 { // not idle, not iowait
			s += x / 100
		}
	}
	return
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
func sec(d time.Duration) float64 { return round(d.Seconds()) }
func round(x float64) float64     { return math.Round(x*1000) / 1000 }
func ptr[T any](x T) *T           { return &x }
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
