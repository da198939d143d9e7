// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (g *gen) burst(ctx context.Context, n, par int, settle time.Duration, wantPods bool, ps []proc, out map[string]any) {
	cpu0 := cpuOf(ps)
	stop, peaks := samplePeaks(ps)
	created := make(map[string]time.Time, n)
	var cm sync.Mutex
	t0 := time.Now()
	names := g.each(n, par, func(name string) {
		t := time.Now()
		g.create(ctx, name)
		cm.Lock()
		created[name] = t
		cm.Unlock()
	})
	out["create_all_s"] = sec(time.Since(t0))
	g.wait("Jobs", func() bool {
		for _, x := range names {
			if len(g.jobs[x]) < g.jobsPer {
				return false
			}
		}
		return true
	})
	if wantPods {
		rest := names
		g.wait("running Pods", func() bool {
			for len(rest) > 0 && g.runningPods(rest[0]) >= g.nodes {
				rest = rest[1:]
			}
			return len(rest) == 0
		})
	}
	cpuJobs := cpuOf(ps)
	time.Sleep(settle)
	cpu1 := cpuOf(ps)
	rss := rssOf(ps)
	stop()
	g.mu.Lock()
	var lastJob, lastPod, lastRun time.Time
	var jl, pl []float64
	for _, x := range names {
		var tj, tp time.Time
		for _, t := range g.jobs[x] {
			tj = later(tj, t)
		}
		for _, p := range g.pods[x] {
			tp = later(tp, p.seen)
			lastRun = later(lastRun, p.running)
		}
		lastJob, lastPod = later(lastJob, tj), later(lastPod, tp)
		jl = append(jl, tj.Sub(created[x]).Seconds())
		if wantPods {
			pl = append(pl, tp.Sub(created[x]).Seconds())
		}
	}
	g.mu.Unlock()
	out["first_create_to_last_job_s"] = sec(lastJob.Sub(t0))
	out["job_latency_s"] = stats(jl)
	if wantPods {
		out["first_create_to_last_pod_s"] = sec(lastPod.Sub(t0))
		out["pod_latency_s"] = stats(pl)
		out["first_create_to_last_running_s"] = sec(lastRun.Sub(t0))
	}
	for _, p := range ps {
		out["proc_"+p.name] = map[string]any{
			"cpu_s_until_last_object": round(cpuJobs[p.name] - cpu0[p.name]), "cpu_s_settled": round(cpu1[p.name] - cpu0[p.name]),
			"rss_mib_end": rss[p.name], "rss_mib_peak": peaks()[p.name]}
	}
	t1 := time.Now()
	g.deleteAll(ctx)
	out["delete_all_s"] = sec(time.Since(t1))
}

func (g *gen) latency(ctx context.Context, n int, out map[string]any) {
	var jl, pl, rl []float64
	for i := range n {
		name := fmt.Sprintf("%s-%05d", g.prefix, i)
		t0 := time.Now()
		g.create(ctx, name)
		g.wait("Job and Pods of "+name, func() bool { return len(g.jobs[name]) >= g.jobsPer && len(g.pods[name]) >= g.nodes })
		g.wait("Pods running of "+name, func() bool { return g.runningPods(name) >= g.nodes })
		g.mu.Lock()
		var tj, tp, tr time.Time
		for _, t := range g.jobs[name] {
			tj = later(tj, t)
		}
		for _, p := range g.pods[name] {
			tp, tr = later(tp, p.seen), later(tr, p.running)
		}
		g.mu.Unlock()
		jl, pl, rl = append(jl, tj.Sub(t0).Seconds()), append(pl, tp.Sub(t0).Seconds()), append(rl, tr.Sub(t0).Seconds())
		g.delete(ctx, name)
	}
	out["create_to_job_s"], out["create_to_last_pod_s"], out["create_to_all_running_s"] = stats(jl), stats(pl), stats(rl)
}

func (g *gen) failure(ctx context.Context, mode string, n int, out map[string]any) {
	var first, second, third, target, failed []float64
	for i := range n {
		name := fmt.Sprintf("%s-%05d", g.prefix, i)
		g.create(ctx, name)
		g.wait("Pods running of "+name, func() bool { return g.runningPods(name) >= g.nodes })
		g.mu.Lock()
		jobs0, victim := len(g.jobs[name]), ""
		for _, p := range g.pods[name] {
			if victim == "" || p.name < victim {
				victim = p.name
			}
		}
		g.mu.Unlock()
		g.fail(ctx, victim)
		g.wait("end of pod "+victim, func() bool { return !g.ended(name).IsZero() })
		g.mu.Lock()
		t0 := g.ended(name)
		g.mu.Unlock()
		if mode == "restart" {
			g.wait("replacement Job of "+name, func() bool { return len(g.jobs[name]) > jobs0 })
			g.wait("replacement Pods of "+name, func() bool { return len(g.pods[name]) >= 2*g.nodes })
			g.wait("replacement Pods running of "+name, func() bool { return g.runningPods(name) >= g.nodes })
			g.mu.Lock()
			var tj, tp, tr time.Time
			for _, t := range g.jobs[name] {
				tj = later(tj, t)
			}
			for _, p := range g.pods[name] {
				tp, tr = later(tp, p.seen), later(tr, p.running)
			}
			g.mu.Unlock()
			first, second, third = append(first, tj.Sub(t0).Seconds()), append(second, tp.Sub(t0).Seconds()), append(third, tr.Sub(t0).Seconds())
		} else {
			g.wait("condition Failed of "+name, func() bool { return !g.tjs[name]["Failed"].IsZero() })
			g.mu.Lock()
			first = append(first, g.tjs[name]["Failed"].Sub(t0).Seconds())
			g.mu.Unlock()
		}
		g.mu.Lock()
		target = append(target, g.jobc[name]["FailureTarget"].Sub(t0).Seconds())
		failed = append(failed, g.jobc[name]["Failed"].Sub(t0).Seconds())
		g.mu.Unlock()
		g.delete(ctx, name)
	}
	// Kubernetes' own part: the Job controller sets FailureTarget and, when the Pods are gone, Failed
	out["pod_failed_to_job_failuretarget_s"], out["pod_failed_to_job_failed_s"] = stats(target), stats(failed)
	if mode == "restart" {
		out["pod_failed_to_new_job_s"], out["pod_failed_to_last_new_pod_s"], out["pod_failed_to_all_running_s"] = stats(first), stats(second), stats(third)
	} else {
		out["pod_failed_to_trainjob_failed_s"], out["message"] = stats(first), g.message
	}
}

func (g *gen) finished(ctx context.Context, n, par int, status string) {
	var ended map[string]any
	check(json.Unmarshal([]byte(status), &ended))
	g.each(n, par, func(name string) {
		g.create(ctx, name)
		patch, _ := json.Marshal(map[string]any{"status": ended})
		_, err := g.dyn.Resource(trainJobs).Namespace(g.ns).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		check(err)
	})
}

// each calls f for n names, `par` of them at the same time, and returns the names
func (g *gen) each(n, par int, f func(name string)) []string {
	names := make([]string, n)
	work := make(chan string)
	var wg sync.WaitGroup
	for range par {
		wg.Go(func() {
			for name := range work {
				f(name)
			}
		})
	}
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d", g.prefix, i)
		work <- names[i]
	}
	close(work)
	wg.Wait()
	return names
}
