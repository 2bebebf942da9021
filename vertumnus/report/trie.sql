-- What each scan of the prefix trie saw (sec. 7.1) and what the manager chose (sec. 7.2), by degree: block
-- copies held, access[z, C] and missed[z, C] summed over all blocks; the chosen operations are of all degrees.
SELECT scan,
       t_ns / 1e9 AS t_s,
       cp_degree,
       known_blocks,
       copies,
       access,
       missed_s,
       inter_chosen,
       intra_chosen,
       reclaim_chosen,
       unfinished
FROM trie_samples
WHERE run_id = $run_id
ORDER BY scan, cp_degree
