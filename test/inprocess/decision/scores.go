// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// scoreLog collects the final scores of nodes, which the scheduler logs at level 10, and discards all other logs. klog has
// one logger, and only one scheduler runs at a time.
type scoreLog struct {
	mutex  sync.Mutex
	scores framework.NodeScoreList
}

var scoresOfCycle scoreLog

// WatchScores adds the scores of nodes to all decisions from its first call on: klog cannot change its logger safely. Other
// log messages are discarded.
var WatchScores = sync.OnceValue(func() error {
	klog.SetLogger(logr.New(&scoresOfCycle))
	return klogFlags.Set("vmodule", "generic_scheduler=10")
})

func (l *scoreLog) Init(logr.RuntimeInfo)                  {}
func (l *scoreLog) Enabled(int) bool                       { return true }
func (l *scoreLog) Error(error, string, ...interface{})    {}
func (l *scoreLog) WithValues(...interface{}) logr.LogSink { return l }
func (l *scoreLog) WithName(string) logr.LogSink           { return l }

// Info records the score of a node: the values are those of pod, node and score.
func (l *scoreLog) Info(_ int, message string, values ...interface{}) {
	if message != "Calculated node's final score for pod" {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.scores = append(l.scores, framework.NodeScore{Name: values[3].(string), Score: values[5].(int64)})
}

// take returns the scores since the last call.
func (l *scoreLog) take() framework.NodeScoreList {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	scores := l.scores
	l.scores = nil
	return scores
}

// text returns scores as text, in their order.
func text(scores framework.NodeScoreList) string {
	var b strings.Builder
	for _, s := range scores {
		fmt.Fprintf(&b, " %s=%d", s.Name, s.Score)
	}
	return b.String()
}
