// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

// nodeTable gives each node that exists or runs something a small number, so that what is counted per node fits into
// slices. It is not safe for parallel use; the index guards it.
type nodeTable struct {
	records map[string]*nodeRecord
	// free are the numbers below next that no node has.
	free []int32
	next int32
	// existing is the number of nodes whose object exists.
	existing int
	// published holds the numbers by name for readers without a lock: it is never changed, but made again for the first
	// reader after a node came or went. nil if it is out of date.
	published map[string]int32
}

type nodeRecord struct {
	name   string
	number int32
	// pods is how many pods run something on the node. The node's object may come after them, and go before them.
	pods   int
	exists bool
	sizes  reportedSizes
}

func newNodeTable() nodeTable {
	return nodeTable{records: map[string]*nodeRecord{}}
}

// record returns the node's record, which it makes if there is none. The caller must give it a pod or let it exist.
func (t *nodeTable) record(name string) *nodeRecord {
	if record, ok := t.records[name]; ok {
		return record
	}
	record := &nodeRecord{name: name}
	if last := len(t.free) - 1; last >= 0 {
		record.number, t.free = t.free[last], t.free[:last]
	} else {
		record.number = t.next
		t.next++
	}
	t.records[name] = record
	t.published = nil
	return record
}

// release forgets a node that neither exists nor runs anything.
func (t *nodeTable) release(record *nodeRecord) {
	if record.exists || record.pods > 0 {
		return
	}
	delete(t.records, record.name)
	t.free = append(t.free, record.number)
	t.published = nil
}

// numbers returns the numbers of all nodes by name, in a map that never changes. All are less than next.
func (t *nodeTable) numbers() map[string]int32 {
	if t.published == nil {
		t.published = make(map[string]int32, len(t.records))
		for name, record := range t.records {
			t.published[name] = record.number
		}
	}
	return t.published
}
