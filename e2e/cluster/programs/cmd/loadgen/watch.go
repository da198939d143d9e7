// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

type pod struct {
	name                 string
	seen, running, ended time.Time // first seen at all, with phase Running, with phase Failed
	active               bool
}

func (g *gen) watch(ctx context.Context) {
	f := informers.NewSharedInformerFactoryWithOptions(g.kube, 0, informers.WithNamespace(g.ns))
	d := dynamicinformer.NewFilteredDynamicSharedInformerFactory(g.dyn, 0, g.ns, nil)
	handle := func(fn func(o metav1.Object, gone bool)) cache.ResourceEventHandlerFuncs {
		call := func(o any, gone bool) {
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = t.Obj
			}
			a, err := meta.Accessor(o)
			check(err)
			g.mu.Lock()
			fn(a, gone)
			g.cond.Broadcast()
			g.mu.Unlock()
		}
		return cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { call(o, false) }, UpdateFunc: func(_, o any) { call(o, false) }, DeleteFunc: func(o any) { call(o, true) }}
	}
	f.Batch().V1().Jobs().Informer().AddEventHandler(handle(func(o metav1.Object, gone bool) {
		g.live["job/"+o.GetName()] = !gone
		tj := g.trainJobOf(o.GetName())
		if g.jobc[tj] == nil {
			g.jobc[tj] = map[string]time.Time{}
		}
		for _, c := range o.(*batchv1.Job).Status.Conditions {
			if c.Status == corev1.ConditionTrue && g.jobc[tj][string(c.Type)].IsZero() {
				g.jobc[tj][string(c.Type)] = time.Now()
			}
		}
		if g.jobs[tj] == nil {
			g.jobs[tj] = map[types.UID]time.Time{}
		}
		if _, ok := g.jobs[tj][o.GetUID()]; !ok {
			g.jobs[tj][o.GetUID()] = time.Now()
		}
	}))
	f.Core().V1().Pods().Informer().AddEventHandler(handle(func(o metav1.Object, gone bool) {
		g.live["pod/"+o.GetName()] = !gone
		tj := g.trainJobOf(o.GetName())
		if g.pods[tj] == nil {
			g.pods[tj] = map[types.UID]*pod{}
		}
		p := g.pods[tj][o.GetUID()]
		if p == nil {
			p = &pod{name: o.GetName(), seen: time.Now()}
			g.pods[tj][o.GetUID()] = p
		}
		phase := o.(*corev1.Pod).Status.Phase
		p.active = !gone && o.GetDeletionTimestamp() == nil && phase == corev1.PodRunning
		if phase == corev1.PodFailed && p.ended.IsZero() {
			p.ended = time.Now()
		}
		if phase == corev1.PodRunning && p.running.IsZero() {
			p.running = time.Now()
		}
	}))
	d.ForResource(trainJobs).Informer().AddEventHandler(handle(func(o metav1.Object, gone bool) {
		g.live["trainjob/"+o.GetName()] = !gone
		m := g.tjs[o.GetName()]
		if m == nil {
			m = map[string]time.Time{"": time.Now()}
			g.tjs[o.GetName()] = m
		}
		conds, _, _ := unstructured.NestedSlice(o.(*unstructured.Unstructured).Object, "status", "conditions")
		for _, c := range conds {
			c, _ := c.(map[string]any)
			if c["status"] == "True" {
				t := fmt.Sprint(c["type"])
				if m[t].IsZero() {
					m[t] = time.Now()
				}
				if t == "Failed" {
					g.message = fmt.Sprint(c["message"])
				}
			}
		}
	}))
	f.Start(ctx.Done())
	d.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	d.WaitForCacheSync(ctx.Done())
}

// trainJobOf returns the TrainJob's name PREFIX-NNNNN, with which an object's name begins
func (g *gen) trainJobOf(name string) string {
	if n := len(g.prefix) + 6; strings.HasPrefix(name, g.prefix+"-") && len(name) >= n {
		return name[:n]
	}
	return ""
}

func (g *gen) runningPods(tj string) int {
	n := 0
	for _, p := range g.pods[tj] {
		if p.active {
			n++
		}
	}
	return n
}

// ended returns when the first of the TrainJob's Pods failed
func (g *gen) ended(tj string) (t time.Time) {
	for _, p := range g.pods[tj] {
		if t.IsZero() || !p.ended.IsZero() && p.ended.Before(t) {
			t = p.ended
		}
	}
	return
}

func (g *gen) waitGone(prefix string) {
	g.wait("end of "+prefix, func() bool {
		for k, v := range g.live {
			if _, name, _ := strings.Cut(k, "/"); v && strings.HasPrefix(name, prefix) {
				return false
			}
		}
		return true
	})
}

// wait until f, called with the lock held, is true
func (g *gen) wait(what string, f func() bool) {
	end := time.Now().Add(g.limit)
	tick := time.AfterFunc(g.limit, g.cond.Broadcast)
	defer tick.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for !f() {
		if time.Now().After(end) {
			log.Fatalf("no %s after %s", what, g.limit)
		}
		g.cond.Wait()
	}
}
