// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/extendernodes"
)

// outside receives functions that bubble calls outside of it. There, time is real, and idle connections do not stop the
// clock of the bubble.
var outside = make(chan func())

// extender is an extender whose requests are sent outside of the bubble, and counted.
type extender struct {
	framework.Extender
	config schedulerconfig.Extender
	client kubernetes.Interface

	mutex                sync.Mutex // A binding has its own goroutine.
	calls, failed, bound int
	failure              error // the first one
}

// useExtenders replaces the scheduler's extenders, also those of its profiles: they have the same slice. It does not wrap
// them, because the patched scheduler records how long each call takes, which differs from run to run.
func (s *Simulation) useExtenders(client kubernetes.Interface) error {
	configs := append([]schedulerconfig.Extender(nil), s.options.Config.Extenders...)
	// As the scheduler does it.
	sort.SliceStable(configs, func(i, j int) bool { return !configs[i].Ignorable && configs[j].Ignorable })
	for i := range configs {
		sends, err := scheduler.NewHTTPExtender(&configs[i])
		if err != nil {
			return err
		}
		of := &extender{Extender: sends, config: configs[i], client: client}
		s.extenders = append(s.extenders, of)
		s.Scheduler.Extenders[i] = of
	}
	return nil
}

// localPort is the own end of a connection in an error. It differs from run to run.
var localPort = regexp.MustCompile(`\S+:\d+->`)

// send sends a request outside of the bubble, unless the extender lacks the verb: then do sends none. The bubble's clock
// stands still meanwhile, as while a goroutine waits for any mutex. A channel that is made here would belong to the bubble.
func (e *extender) send(verb string, err *error, do func()) {
	if verb == "" {
		do()
		return
	}
	var done sync.Mutex
	done.Lock()
	outside <- func() { do(); done.Unlock() }
	done.Lock()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.calls++; *err != nil {
		*err = errors.New(localPort.ReplaceAllString((*err).Error(), ""))
		if e.failed++; e.failed == 1 {
			e.failure = *err
		}
	}
}

// Filter implements framework.Extender.
func (e *extender) Filter(pod *v1.Pod, nodes []*v1.Node) (left []*v1.Node, failed, unresolvable extenderv1.FailedNodesMap, err error) {
	e.send(e.config.FilterVerb, &err, func() { left, failed, unresolvable, err = e.Extender.Filter(pod, nodes) })
	return left, failed, unresolvable, err
}

// Prioritize implements framework.Extender.
func (e *extender) Prioritize(pod *v1.Pod, nodes []*v1.Node) (scores *extenderv1.HostPriorityList, weight int64, err error) {
	e.send(e.config.PrioritizeVerb, &err, func() { scores, weight, err = e.Extender.Prioritize(pod, nodes) })
	return scores, weight, err
}

// ProcessPreemption implements framework.Extender.
func (e *extender) ProcessPreemption(pod *v1.Pod, victims map[string]*extenderv1.Victims, nodes framework.NodeInfoLister) (left map[string]*extenderv1.Victims, err error) {
	e.send(e.config.PreemptVerb, &err, func() { left, err = e.Extender.ProcessPreemption(pod, victims, nodes) })
	return left, err
}

// Bind binds the pod in the simulation. The extender would ask its API server to bind a pod that does not exist.
func (e *extender) Bind(binding *v1.Binding) error {
	e.mutex.Lock()
	e.bound++
	e.mutex.Unlock()
	return e.client.CoreV1().Pods(binding.Namespace).Bind(context.TODO(), binding, metav1.CreateOptions{})
}

// extenderNotes returns what was asked of the extenders.
func (s *Simulation) extenderNotes() (notes []string) {
	for _, e := range s.extenders {
		note := fmt.Sprintf("extender %s: %d requests, ", extendernodes.WithoutCredentials(e.config.URLPrefix), e.calls)
		if e.failed > 0 {
			note += fmt.Sprintf("of which %d failed, first with: %v; ", e.failed, e.failure)
		}
		if e.bound > 0 {
			note += fmt.Sprintf("%d pods bound without its bind verb, ", e.bound)
		}
		notes = append(notes, note+"and what it knows of nodes and pods from elsewhere is not simulated")
	}
	return notes
}
