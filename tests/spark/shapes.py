"""SQL shapes as views, the tables they read, and how these change: `test_shapes.py` follows every one of them."""

from __future__ import annotations

from checks import FEED

JOINS = {
    "left_": "SELECT o.id, o.k, c.name FROM o LEFT JOIN c ON o.k = c.k AND c.name <> 'x'",
    "right_": "SELECT o.id, c.k, c.name FROM o RIGHT JOIN c ON o.k = c.k",
    "full_": "SELECT o.id, o.k AS a, c.k AS b, c.name FROM o FULL OUTER JOIN c ON o.k = c.k AND o.price > 3",
    "full_using": "SELECT k, o.id, c.name FROM o FULL JOIN c USING (k)",
    "full_chain": "SELECT k, o.id, e.id AS other, c.name FROM o FULL JOIN e USING (k) FULL JOIN c USING (k)",
    "theta": "SELECT o.id, e.id AS other FROM o LEFT JOIN e ON o.price < e.price AND e.day > o.day",
    "chain": """SELECT o.id, c.name, e.tag FROM o LEFT JOIN c ON o.k = c.k LEFT JOIN e ON e.k = c.k
                WHERE e.price IS NULL OR e.price > 2""",
    "nest": "SELECT o.id, c.name, e.tag FROM o FULL JOIN (c LEFT JOIN e ON e.k = c.k) ON o.k = c.k",
    "counted": """SELECT c.name, count(o.id) AS n, count(*) AS m, sum(o.price) AS x, max(o.day) AS last
                  FROM c LEFT JOIN o ON o.k = c.k GROUP BY c.name""",
    "itself": "SELECT a.id, b.id AS other FROM o a LEFT JOIN o b ON a.k = b.k AND a.id < b.id",
    "crossed": "SELECT o.id, c.name FROM o CROSS JOIN c",
    "within": "SELECT o.id, c.name, o.day FROM o JOIN c ON o.day BETWEEN c.since AND c.since + 2",
    "right_theta": "SELECT o.id, e.id AS other FROM o RIGHT JOIN e ON o.price > e.price AND o.k <> e.k",
    "full_theta": "SELECT o.id, e.id AS other, e.k FROM o FULL JOIN e ON o.price < e.price AND o.day >= e.day AND e.tag = 'a-1'",
    "bushy": """SELECT a.id, b.name, x.id AS other, y.name AS its FROM (o a LEFT JOIN c b ON a.k = b.k) FULL JOIN
                (e x RIGHT JOIN c y ON x.k = y.k) ON a.k = y.k AND b.name <> x.tag""",
    "rejecting": "SELECT o.id, c.name FROM o FULL JOIN c ON o.k = c.k WHERE c.since < DATE'2024-01-06' AND o.price > 1",
    "grouped_full": """SELECT coalesce(o.k, c.k) AS k, count(o.id) AS n, count(c.name) AS m, sum(o.price) AS x, max(c.since) AS last
                       FROM o FULL JOIN c ON o.k = c.k GROUP BY coalesce(o.k, c.k) HAVING count(*) > 1""",
    "semi": "SELECT * FROM o LEFT SEMI JOIN c ON o.k = c.k",
    "anti": "SELECT id, price FROM o LEFT ANTI JOIN e ON o.k = e.k AND o.price < e.price",
    "exists_": "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM e WHERE e.k = o.k AND e.price > o.price)",
    "not_exists": "SELECT k, name FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.k = c.k)",
    "in_": "SELECT id, price FROM o WHERE k IN (SELECT k FROM c WHERE name IS NOT NULL)",
    "not_in": "SELECT id FROM o WHERE k NOT IN (SELECT k FROM e WHERE price > 4)",
    "not_in_or": "SELECT id FROM o WHERE NOT (k IN (SELECT k FROM e WHERE price > 4) OR price > 7)",
    "case_not_in": "SELECT id, CASE WHEN k NOT IN (SELECT k FROM e) THEN 1 ELSE 2 END AS x, (k IN (SELECT k FROM c)) = false AS y FROM o",
    "pairs_not_in": "SELECT id FROM o WHERE (k, tag) NOT IN (SELECT k, tag FROM e WHERE price > 4)",
    "own_not_in": "SELECT id FROM o WHERE price NOT IN (SELECT price FROM e WHERE e.k = o.k)",
    "unsurpassed": "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM e WHERE e.price > o.price AND e.day <= o.day)",
    "under_or": "SELECT id FROM o WHERE price < 2 OR k IN (SELECT k FROM c) AND NOT EXISTS (SELECT 1 FROM e WHERE e.id = o.id)",
    "in_select": "SELECT id, k IN (SELECT k FROM c) AS known, CASE WHEN EXISTS (SELECT 1 FROM e WHERE e.k = o.k) THEN 1 END AS x FROM o",
    "threshold": "SELECT id, price FROM o WHERE price > (SELECT avg(price) FROM e)",
    "correlated": "SELECT o.id, (SELECT count(*) FROM e WHERE e.k = o.k) AS n, (SELECT max(price) FROM e WHERE e.k = o.k) AS top FROM o",
    "above_own": "SELECT id FROM o WHERE price >= (SELECT avg(x.price) FROM o x WHERE x.k = o.k)",
    "above_average": """WITH q AS (SELECT k, sum(price) AS x FROM o GROUP BY k) SELECT q.k, q.x / t.x AS share
                        FROM q CROSS JOIN (SELECT sum(x) AS x FROM q) t WHERE q.x >= (SELECT avg(x) FROM q)""",
    "having_sub": "SELECT k, sum(price) AS x FROM o GROUP BY k HAVING sum(price) > (SELECT min(price) FROM e)",
    "having_own": "SELECT k, sum(price) AS x FROM o GROUP BY k HAVING sum(price) > (SELECT max(price) FROM e WHERE e.k = o.k)",
}

OTHERS = {
    "except_": "SELECT k FROM o EXCEPT SELECT k FROM c",
    "except_all": "SELECT k, tag FROM o EXCEPT ALL SELECT k, tag FROM e",
    "intersect_": "SELECT k, tag FROM o INTERSECT SELECT k, tag FROM e",
    "intersect_all": "SELECT k FROM o INTERSECT ALL SELECT k FROM e",
    "latest": "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY day DESC, id DESC) AS n FROM o) WHERE n = 1",
    "running": """SELECT id, sum(price) OVER (PARTITION BY k ORDER BY day, id ROWS UNBOUNDED PRECEDING) AS x,
                  lag(price) OVER (PARTITION BY k ORDER BY day, id) AS before, rank() OVER (PARTITION BY tag ORDER BY price) AS r
                  FROM o""",
    "validity": """SELECT k, name, since, lead(since) OVER (PARTITION BY k ORDER BY since, name) AS until FROM
                   (SELECT k, name, min(since) AS since FROM c GROUP BY k, name)""",
    "numbered": """SELECT id, row_number() OVER (ORDER BY day DESC, id, k, price, tag) AS n, sum(price) OVER (ORDER BY day) AS x,
                   dense_rank() OVER (ORDER BY price DESC NULLS FIRST) AS r FROM o""",
    "share": "SELECT id, price / sum(price) OVER (PARTITION BY k) AS share, count(*) OVER (PARTITION BY k) AS n FROM o WHERE price > 0",
    "ranked_groups": """SELECT k, tag, sum(price) AS x, dense_rank() OVER (PARTITION BY k ORDER BY sum(price) DESC) AS n
                        FROM o GROUP BY k, tag""",
    "qualified": "SELECT o.id, c.name FROM o JOIN c ON o.k = c.k QUALIFY row_number() OVER (PARTITION BY c.name ORDER BY o.price DESC, o.id, o.day) <= 2",
    "share_of_all": """SELECT tag, sum(price) AS x, sum(price) / sum(sum(price)) OVER () AS share,
                       ntile(2) OVER (ORDER BY sum(price), tag) AS half FROM o GROUP BY tag""",
    "over_share": "SELECT half, max(share) AS most, count(*) AS n FROM share_of_all GROUP BY half",
    "islands": """SELECT k, min(d) AS since, count(*) AS n FROM (SELECT k, d, date_sub(d, CAST(row_number() OVER (PARTITION BY k
                  ORDER BY d) AS INT)) AS g FROM (SELECT DISTINCT k, CAST(day AS DATE) AS d FROM o)) GROUP BY k, g""",
    "classes": """SELECT k, x, CASE WHEN r / t <= 0.5 THEN 'A' WHEN r / t <= 0.9 THEN 'B' ELSE 'C' END AS class FROM
                  (SELECT k, x, sum(x) OVER (ORDER BY x DESC NULLS LAST, k) AS r, (SELECT sum(price) FROM o) AS t FROM
                  (SELECT k, sum(price) AS x FROM o GROUP BY k))""",
    "cohorts": """WITH p AS (SELECT id, k, date_trunc('MONTH', day) AS m FROM o), n AS (SELECT m, count(*) AS n FROM p GROUP BY m)
                  SELECT p.m, q.m AS other, count(DISTINCT p.k) AS x, max(n.n) AS n FROM p JOIN p q ON q.k = p.k JOIN n ON n.m = p.m
                  WHERE q.m >= p.m GROUP BY p.m, q.m""",
    "distinct_filters": """SELECT x, count(DISTINCT y) FILTER (WHERE y > 1) AS n, sum(DISTINCT y) AS s FROM (SELECT k AS x, id AS y FROM o
                           UNION ALL SELECT id, k FROM e) GROUP BY x""",
    "labelled": "SELECT k, 'all' AS label, count(*) AS n FROM o GROUP BY k, 'all'",
    "best": "SELECT k, sum(price) AS x FROM o GROUP BY k ORDER BY x DESC NULLS LAST, k LIMIT 2",
    "over_best": "SELECT count(*) AS n, sum(x) AS x FROM best",
    "kinds_of_each": "SELECT q.k, (SELECT count(*) FROM (SELECT DISTINCT e.tag FROM e WHERE e.k = q.k)) AS n FROM (SELECT DISTINCT k FROM o) AS q",
    "most_common": """SELECT a.k, a.n FROM (SELECT k, since, count(*) AS n FROM c GROUP BY k, since) a JOIN (SELECT max(n) AS m, since FROM
                      (SELECT k, since, count(*) AS n FROM c GROUP BY k, since) GROUP BY since) b ON a.since = b.since AND a.n >= b.m""",
    "cheapest": "SELECT id, price FROM o ORDER BY price, id LIMIT 3 OFFSET 1",
    "rollup_": "SELECT k, tag, grouping(tag) AS g, count(*) AS n, sum(price) AS x FROM o GROUP BY ROLLUP (k, tag)",
    "cube_": "SELECT k, tag, max(price) AS x FROM o GROUP BY CUBE (k, tag)",
    "sets_": "SELECT k, tag, count(DISTINCT id) AS x FROM o GROUP BY k, tag GROUPING SETS ((k, tag), (tag), ())",
    "exploded": "SELECT id, t FROM o LATERAL VIEW OUTER explode(split(tag, '-')) x AS t",
    "word_count": "SELECT t, count(*) AS n FROM (SELECT explode(split(tag, '-')) AS t FROM o) GROUP BY t",
    "positions": "SELECT id, posexplode(array(k, id)) AS (at, x) FROM o WHERE price > 1",
    "picked": "SELECT k, max_by(id, struct(price, id)) AS dearest, sort_array(collect_list(id)) AS ids, count_if(price > 3) AS n FROM o GROUP BY k",
    "means": "SELECT max(m) AS m, sum(s) AS s FROM (SELECT k, avg(CAST(price AS DOUBLE) / 7) AS m, stddev(id) AS s FROM o GROUP BY k)",
    "averages": """SELECT id, avg(id) OVER (PARTITION BY k) AS a, sum(price / 7D) OVER (PARTITION BY k ORDER BY day) AS s,
                   last_value(id) OVER (PARTITION BY tag ORDER BY day) AS last FROM o""",
    "inner_picks": """SELECT o.id, p.ids, p.best, p.one, p.often FROM o JOIN (SELECT k, collect_list(id) AS ids,
                      max_by(id, price) AS best, first(day) AS one, mode(tag) AS often FROM o GROUP BY k) p ON o.k = p.k""",
    "picks": "SELECT k, collect_set(tag) AS tags, min_by(id, price) AS best, any_value(day) AS one, avg(price / 7D) AS mean FROM o GROUP BY k",
    "payloads": """SELECT id, map('k', k, 'id', CAST(id AS INT)) AS m, array(map(id, tag)) AS a,
                   parse_json('{"id": ' || id || '}') AS v, named_struct('m', map(k, day)) AS s FROM o WHERE k IS NOT NULL AND id IS NOT NULL""",
    "dearest": "SELECT o.id, c.name, o.price FROM o JOIN c ON o.k = c.k ORDER BY o.price DESC, o.id, c.name LIMIT 2",
    "visits": """SELECT k, session_window.start AS a, session_window.end AS b, count(*) AS n, sum(price) AS x FROM o WHERE id > 1
                 GROUP BY k, session_window(CAST(day AS TIMESTAMP), '26 hours')""",
    "all_visits": "SELECT session_window.start AS a, count(*) AS n, sum(price) AS x FROM o GROUP BY session_window(CAST(day AS TIMESTAMP), '25 hours')",
    "distincts": "SELECT k, count(DISTINCT tag) AS a, sum(DISTINCT price) AS b, percentile(price, 0.5) AS c FROM o GROUP BY k",
}

LOWERED = {
    "pivot_": "SELECT * FROM (SELECT k, tag, price FROM o) PIVOT (sum(price) AS x, count(*) AS n FOR tag IN ('a-0' AS p, 'a-1' AS q, NULL AS z))",
    "pivot_dates": "SELECT * FROM (SELECT tag, k, day FROM o) PIVOT (max(day) AS last, count(*) AS n FOR k IN (1, 2, 17 AS none))",
    "pivot_pairs": "SELECT * FROM (SELECT k, tag, price, day FROM o) PIVOT (sum(price) FOR (tag, k) IN (('a-0', 1) AS x, ('a-1', 2) AS y))",
    "unpivot_": "SELECT day, n, v FROM o UNPIVOT (v FOR n IN (k, id AS Number, price))",
    "unpivot_nulls": "SELECT n, count(*) AS m, sum(v) AS x FROM o UNPIVOT INCLUDE NULLS (v FOR n IN (k, price)) GROUP BY n",
    "lateral_top": "SELECT c.name, q.id, q.price FROM c, LATERAL (SELECT id, price FROM o WHERE o.k = c.k ORDER BY price DESC, id LIMIT 2) AS q",
    "lateral_left": "SELECT o.id, q.tag, q.x FROM o LEFT JOIN LATERAL (SELECT tag, e.price + o.price AS x FROM e WHERE e.k = o.k) AS q ON q.x > 3",
    "lateral_count": "SELECT c.k, q.n, q.top FROM c, LATERAL (SELECT count(*) AS n, max(price) AS top FROM o WHERE o.day >= c.since) AS q",
    "as_of": "SELECT id, (SELECT max(price) FROM e WHERE e.day <= o.day) AS x, (SELECT count(*) FROM c WHERE c.since < o.day) AS n FROM o",
    "latest_value": "SELECT id, (SELECT tag FROM e WHERE e.k = o.k ORDER BY day DESC, id DESC LIMIT 1) AS tag FROM o",
    "on_one_side": "SELECT o.id, c.name FROM o FULL JOIN c ON o.k = c.k AND EXISTS (SELECT 1 FROM e WHERE e.k = o.k AND e.price > 2) AND c.k IN (SELECT k FROM e)",
    "exists_having": "SELECT k, name FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.k = c.k HAVING count(*) > 3)",
    "in_two_days": "SELECT window.start AS since, k, count(*) AS n, sum(price) AS x FROM o GROUP BY k, window(CAST(day AS TIMESTAMP), '2 days')",
    "sliding": "SELECT id, window(CAST(day AS TIMESTAMP), '3 days', '1 day').end AS until FROM o WHERE price > 1",
    "listed": "SELECT k, listagg(tag, ',') WITHIN GROUP (ORDER BY tag) AS tags, listagg(DISTINCT tag) WITHIN GROUP (ORDER BY tag DESC) AS once FROM o GROUP BY k",
    "percentiles": "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS a, percentile_disc(0.25) WITHIN GROUP (ORDER BY price DESC) FILTER (WHERE id > 4) AS b FROM o GROUP BY k",
    "known": "SELECT k, first(tag) IGNORE NULLS IS NULL AS none, count(DISTINCT tag, price) AS n FROM o GROUP BY k",
    "pivot_of_common": "WITH q AS (SELECT k, tag, price FROM o) SELECT * FROM q PIVOT (sum(price) FOR tag IN ('a-0' AS p, 'a-1' AS q))",
    "pivot_ratio": """SELECT * FROM (SELECT k, tag, price FROM o) PIVOT (sum(price) / count(price) AS m, round(sum(price), 1) AS r, coalesce(max(price), -1) AS c
                      FOR tag IN ('a-0' AS p, 'a-1' AS q, 'none' AS z))""",
    "pivot_texts": """SELECT * FROM (SELECT k, tag, k AS n, concat(tag, '!') AS t FROM o) PIVOT (first(t) AS f, last_value(t) AS l, concat('n', count(n)) AS c
                      FOR tag IN ('a-0' AS p, 'a-1' AS q, 'none' AS z))""",
    "pivot_any": "SELECT * FROM (SELECT k, tag, k AS n FROM o) PIVOT (any_value(n) AS a, first(n) AS f, last(n) IGNORE NULLS AS l FOR tag IN ('a-0', 'a-1'))",
    "times": """SELECT k, window_time(window) AS at, count(*) AS n FROM o GROUP BY k, window(CAST(day AS TIMESTAMP), '3 days', '1 day'), window_time(window)""",
    "times_above": """SELECT k, window_time(w) AS at, CASE WHEN window_time(w) > TIMESTAMP'2024-01-04' THEN n END AS n FROM
                      (SELECT k, window AS w, count(*) AS n FROM o GROUP BY k, window(CAST(day AS TIMESTAMP_NTZ), '2 days'))""",
    "times_twice": """SELECT window.start AS since, sum(n) AS n FROM (SELECT window AS w, count(*) AS n FROM o GROUP BY window(CAST(day AS TIMESTAMP), '1 day'))
                      GROUP BY window(window_time(w), '2 days')""",
    "calendar": """SELECT d.x, count(o.id) AS n, sum(o.price) AS p FROM (SELECT DATE'2024-01-01' + CAST(id AS INT) AS x FROM range(7)) AS d
                   LEFT JOIN o ON o.day = d.x GROUP BY d.x""",
    "ranges": "SELECT a.x, b.y, o.id FROM range(3) AS a(x) CROSS JOIN range(1, 7, 2) AS b(y) LEFT JOIN o ON o.k = a.x + b.y",
    "in_range": """SELECT id, (SELECT count(*) FROM range(1, 4) AS n WHERE n.id < o.k) AS c FROM o
                   WHERE k IN (SELECT id FROM range(100000)) OR NOT EXISTS (SELECT 1 FROM range(5) AS t WHERE t.id = o.k)""",
    "by_constants": "SELECT o.id, t.x FROM o JOIN explode(array(1, 2, 2)) AS t(x) ON o.k = t.x",
    "by_distance": """SELECT id, sum(price / 7D) OVER (PARTITION BY k ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s,
                      avg(price / 7D) FILTER (WHERE id > 2) OVER (PARTITION BY tag ORDER BY id RANGE BETWEEN 5 PRECEDING AND 1 FOLLOWING) AS a,
                      last_value(id) OVER (PARTITION BY k ORDER BY price RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS l FROM o""",
    "by_distance_alone": "SELECT d, sum(d) OVER (ORDER BY d RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM (SELECT price / 7D AS d FROM o)",
    "filtered": "SELECT id, sum(price) FILTER (WHERE tag IS NOT NULL) OVER (PARTITION BY k ORDER BY day, id) AS x FROM o",
}

MORE = {
    "null_safe": "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k <=> c.k",
    "natural": "SELECT id, k, tag FROM o NATURAL JOIN (SELECT k FROM e)",
    "bitwise": "SELECT id, k | id ^ 3 & 5 AS b FROM o",
    "bits": """SELECT k, bool_and(price > 1) AS a, bool_or(tag IS NULL) AS b, every(id > 3) AS c, some(id > 9) AS d, any(price > 4) AS e,
               bit_and(id) AS f, bit_or(id) AS g, bit_xor(id) AS h, avg(DISTINCT price) AS i, try_sum(price) AS j, try_avg(price) AS l FROM o GROUP BY k""",
    "moments": """SELECT k, stddev_pop(price) AS a, stddev_samp(price) AS b, std(id) AS c, var_pop(id) AS d, var_samp(id) AS e, variance(price) AS f,
                  skewness(id) AS g, kurtosis(price) AS h, covar_pop(id, price) AS i, covar_samp(id, price) AS j,
                  median(price) AS m, mean(id) AS n FROM o GROUP BY ALL""",
    "related": "SELECT corr(id, price) AS c FROM o",
    "lines": """SELECT k, regr_avgx(id, price) AS a, regr_avgy(id, price) AS b, regr_count(id, price) AS c, regr_intercept(id, price) AS d,
                regr_r2(id, price) AS e, regr_slope(id, price) AS f, regr_sxx(id, price) AS g, regr_sxy(id, price) AS h, regr_syy(id, price) AS i
                FROM o GROUP BY 1""",
    "guesses": """SELECT k, approx_count_distinct(tag) AS a, approx_percentile(id, 0.5) AS b, percentile_approx(price, array(0.1, 0.9)) AS c,
                  size(histogram_numeric(k, 3)) > 0 AS d, mode(k) AS e, string_agg(k, '-') AS f, sort_array(array_agg(id)) AS g, last(k) AS h,
                  first_value(k) AS i, last_value(k) AS j FROM o GROUP BY k""",
    "sketches": """SELECT k, hll_sketch_estimate(hll_sketch_agg(tag)) AS a, hll_sketch_estimate(hll_sketch_agg(id, 10)) AS b, count(*) AS n,
                   theta_sketch_estimate(theta_sketch_agg(id) FILTER (WHERE price > 1)) AS c, kll_sketch_get_n_bigint(kll_sketch_agg_bigint(id, 20)) AS d,
                   kll_sketch_get_quantile_double(kll_sketch_agg_double(CAST(coalesce(price, 0) AS DOUBLE)), 0.5D) AS e,
                   tuple_sketch_summary_double(tuple_sketch_agg_double(id, CAST(price AS DOUBLE), 8)) AS f, avg(price / 7D) AS m FROM o GROUP BY k""",
    "all_sketched": """SELECT hll_sketch_estimate(hll_union_agg(s, true)) AS a, theta_sketch_estimate(theta_union_agg(t)) AS b, sum(theta_sketch_estimate(t)) AS c FROM
                       (SELECT k, hll_sketch_agg(id, 10) AS s, theta_sketch_agg(id, 8) AS t FROM o GROUP BY k)""",
    "marked": """SELECT k, bitmap_count(bitmap_construct_agg(bitmap_bit_position(id))) AS a, hex(count_min_sketch(id, 0.5D, 0.5D, 1)) AS b,
                 size(approx_top_k(tag, 2)) AS c, theta_sketch_estimate(theta_intersection_agg(s)) AS d, schema_of_variant_agg(v) AS e FROM
                 (SELECT k, id, tag, v, s FROM o, (SELECT theta_sketch_agg(k) AS s, parse_json('1') AS v FROM e)) GROUP BY k""",
    "united": "SELECT k, tag FROM o UNION SELECT k, tag FROM o WHERE price > 2 UNION SELECT k, name FROM c",
    "cte_twice": """WITH q AS (SELECT k, count(*) AS n FROM o GROUP BY k), o AS (SELECT k FROM q WHERE n > 1)
                    SELECT a.k, a.n FROM q a JOIN q b ON a.n = b.n JOIN o ON o.k = a.k""",
    "own_alias": "SELECT id, price * 2 AS twice, twice + 1 AS more, more > 5 AS large FROM o ORDER BY id",
    "parts": """SELECT id, ntile(2) OVER w AS a, percent_rank() OVER w AS b, cume_dist() OVER w AS c, nth_value(id, 2) OVER w AS d,
                last_value(tag) IGNORE NULLS OVER w AS e, lag(id, 2, 0) OVER w AS g,
                first_value(tag) IGNORE NULLS OVER (PARTITION BY k ORDER BY day, id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS f,
                count(*) OVER (PARTITION BY k ORDER BY price RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS h
                FROM o WINDOW w AS (PARTITION BY k ORDER BY day, id)""",
    "over_windows": """SELECT id, n, sum(n) OVER (PARTITION BY tag ORDER BY n, id ROWS UNBOUNDED PRECEDING) AS s FROM
                       (SELECT id, tag, rank() OVER (PARTITION BY k ORDER BY price) AS n FROM o)""",
    "using_star": "SELECT e.*, o.price AS p, c.name FROM o JOIN c USING (k) JOIN e USING (k)",
    "struct_star": "SELECT id, s.* FROM (SELECT id, struct(k AS x, tag) AS s FROM o)",
    "unnamed_rows": "SELECT id, col0 + 1 AS a, col1 FROM (SELECT id, stack(2, k, price, 7, price) FROM o)",
    "by_subquery": """SELECT CASE WHEN k IN (SELECT k FROM c) THEN 1 ELSE 2 END AS x, count(*) AS n FROM o
                      GROUP BY CASE WHEN k IN (SELECT k FROM c) THEN 1 ELSE 2 END""",
    "sum_of_sums": "SELECT k, day, sum(sum(price)) OVER (PARTITION BY k ORDER BY day) AS x, count(*) * 100 / sum(count(*)) OVER (PARTITION BY k) AS y FROM o GROUP BY k, day",
    "one_row": "SELECT * FROM (SELECT count(*) AS n FROM o), (SELECT max(price) AS m FROM e) LIMIT 10",
    "by_labels": "SELECT id, k AS x, price AS p FROM o ORDER BY CASE WHEN p > 2 THEN x END NULLS LAST, p * -1, id, day LIMIT 4",
    "over_groups": "SELECT sum(t + 1) AS a, max(t) AS b, avg(n * t) AS c FROM (SELECT k, count(*) AS n, sum(price) AS t FROM o GROUP BY k)",
    "levels": """WITH p AS (SELECT k, max(price) AS m FROM o GROUP BY k), q AS (SELECT p.k, count(*) AS n FROM p JOIN e ON p.k = e.k WHERE p.m > 0 GROUP BY p.k),
                 x AS (SELECT q.n, max(q.k) AS k FROM q JOIN p ON p.k = q.k GROUP BY q.n), y AS (SELECT x.k, max(x.n) AS n FROM x JOIN q ON q.n = x.n GROUP BY x.k)
                 SELECT y.k, y.n FROM y LEFT JOIN x ON x.k = y.k WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.k = y.n)""",
    "inlined": "SELECT id, a, b FROM o LATERAL VIEW inline(array(struct(id AS x, tag AS y), struct(id AS x, 'x' AS y))) AS a, b",
    "stacked": "SELECT id, stack(2, k, price, 7, price) AS (a, b) FROM o",
    "given": "SELECT o.id, v.x FROM o JOIN VALUES (1, 'one'), (2, 'two') AS v(k, x) ON o.k = v.k",
    "json_made": """SELECT id, a, b FROM o LATERAL VIEW json_tuple(concat('{"a": ', id, ', "b": "', tag, '"}'), 'a', 'b') AS a, b""",
    "unnamed_fields": "SELECT id, s.* FROM (SELECT id, from_json(concat('{\"a\": ', id, ', \"b\": \"', tag, '\"}'), 'a INT, b STRING') AS s FROM o)",
    "of_groups": "SELECT k, explode(collect_set(tag)) AS t FROM o GROUP BY k",
    "of_some": "SELECT explode(filter(collect_set(k), x -> x > 1)) FROM o",
    "by_all": "SELECT k, id, tag FROM o ORDER BY ALL DESC LIMIT 4",
    "medians": "SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY price) OVER (PARTITION BY k) AS m FROM o",
    "expressed": """SELECT k + 1 AS k, round(sum(price) / count(*), 3) + max(id) AS x, coalesce(min(tag), '-') AS t,
                    count(DISTINCT day) * 2 AS d, sum(DISTINCT id) AS s, avg(DISTINCT price) AS a FROM o GROUP BY k + 1 HAVING max(price) > 1""",
    "joined_totals": """SELECT a.k, a.x, b.n FROM (SELECT k, sum(price) AS x FROM o GROUP BY k) a FULL JOIN
                        (SELECT k, count(*) AS n FROM e GROUP BY k) b ON a.k <=> b.k""",
    "which_set": "SELECT k, tag, grouping_id(k, tag) AS g, avg(price) AS a FROM o GROUP BY GROUPING SETS ((k, tag), (k), ()) HAVING grouping(tag) = 1 OR count(*) > 1",
    "sets_in_order": "SELECT k, tag, grouping_id() AS g, count(*) AS n FROM o GROUP BY GROUPING SETS ((tag), (k, tag), ())",
    "sets_of_named": "SELECT k, tag, grouping_id() AS g, sum(price) AS x FROM o GROUP BY k, tag GROUPING SETS ((tag), (k, tag))",
    "sets_before": "SELECT k, tag, grouping_id() AS g, grouping(k) AS a, max(price) AS x FROM o GROUP BY CUBE (k), tag",
    "made_of_computed": """SELECT e.id, e.v:b AS b, j FROM (SELECT id, parse_json(t) AS v, from_json(t, 'a INT, b ARRAY<INT>') AS p FROM
                          (SELECT id, concat('{\"b\": [', id, ', 2]}') AS t FROM o)) e LATERAL VIEW explode(e.p.b) AS j""",
    "by_name": "SELECT id, mask(tag, lowerChar => 'q') AS m FROM o",
    "histogram": "SELECT k, histogram_numeric(price, 3) AS h FROM o GROUP BY k",
    "of_nothing": "SELECT count(*) AS n, sum(price) AS x, max(tag) AS t, count(DISTINCT k) AS d FROM o WHERE price > 50",
    "same_table": "SELECT k FROM o EXCEPT ALL SELECT k FROM o WHERE price > 3",
    "three_sets": "(SELECT k, tag FROM o UNION SELECT k, tag FROM e) INTERSECT SELECT k, tag FROM o WHERE price > 1 EXCEPT SELECT k, name FROM c",
    "kinds_of": "SELECT DISTINCT k % 2 = 0 AS even, upper(tag) AS t, price > 2 AS dear FROM o",
    "ignoring": """SELECT id, nth_value(tag, 2) IGNORE NULLS OVER w AS a, lead(tag) IGNORE NULLS OVER w AS b, first_value(id) OVER w AS c,
                   last(tag, true) OVER (PARTITION BY k ORDER BY day DESC, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS d
                   FROM o WINDOW w AS (PARTITION BY k ORDER BY day, id)""",
    "ranked_outer": """SELECT c.name, sum(o.price) AS x, rank() OVER (PARTITION BY c.since ORDER BY sum(o.price) DESC NULLS LAST) AS r
                       FROM c LEFT JOIN o ON o.k = c.k GROUP BY c.name, c.since""",
    "padded_positions": "SELECT id, p, x FROM o LATERAL VIEW OUTER posexplode(IF(price > 2, array(k, id), NULL)) t AS p, x",
    "given_first": "SELECT v.x, o.id FROM VALUES (1, 'one'), (NULL, 'none') AS v(k, x) LEFT JOIN o ON v.k <=> o.k",
    "nested_ctes": """WITH a AS (WITH b AS (SELECT k, price FROM o WHERE price > 1) SELECT k, sum(price) AS x FROM b GROUP BY k),
                      b AS (SELECT k, x FROM a WHERE x > 3) SELECT b.k, b.x, a.x AS y FROM b JOIN a ON a.k = b.k""",
    "unknown_functions": "SELECT id, mask(tag) AS a, luhn_check(CAST(id AS STRING)) AS b, zeroifnull(k) AS c, bitmap_bucket_number(id) AS d FROM o",
    "any_case": "SELECT O.ID, oo.K AS Kk FROM O JOIN o AS OO ON O.Id = oO.iD WHERE o.PRICE > 1",
    "whole": "TABLE c",
    "piped": "FROM o |> WHERE price > 1 |> AGGREGATE sum(price) AS s GROUP BY k",
    "piped_columns": "FROM o |> SET price = price + 1, k = price |> DROP tag |> AS p |> JOIN c ON c.k = p.id |> SELECT p.id, p.price, p.k, c.name",
    "piped_offset": "FROM o |> SELECT id, k, price |> ORDER BY price, id, k |> OFFSET 3",
    "made_on": "SELECT o.id, x.t FROM o JOIN LATERAL explode(split(tag, '-')) AS x(t) ON x.t <> o.tag",
    "made_left": "SELECT o.id, x.t FROM o LEFT JOIN LATERAL explode(split(tag, '-')) AS x(t) ON true",
    "made_left_on": "SELECT o.id, x.t FROM o LEFT JOIN LATERAL explode(split(tag, '-')) AS x(t) ON x.t > '0'",
    "made_always": "SELECT o.id, x.t, y.n FROM o JOIN LATERAL explode(split(tag, '-')) AS x(t) ON true, LATERAL (SELECT length(t) AS n) AS y",
    "made_left_bare": "SELECT o.id, x.t FROM o LEFT JOIN LATERAL explode(split(tag, '-')) AS x(t)",
    "made_left_twice": """SELECT o.id, x.u FROM o LEFT JOIN LATERAL (SELECT u FROM (SELECT explode(split(o.tag, '-')) AS t) LATERAL VIEW
                          explode(IF(t < 'b', array(t), array())) y AS u) AS x ON true""",
    "made_as_table": "SELECT o.id, (SELECT count(*) FROM explode(split(o.tag, '-')) AS t(x) WHERE x <> 'a') AS n, q.x FROM o, LATERAL (SELECT max(col) AS x FROM explode(array(o.k, o.id))) AS q",
    "made_around": "SELECT o.id, (SELECT max(value) FROM (SELECT explode(map('k', o.k, 'id', o.id)))) AS x FROM o",
    "most_frequent": """SELECT id, mode() WITHIN GROUP (ORDER BY tag) OVER (PARTITION BY k) AS m, mode() WITHIN GROUP (ORDER BY tag DESC) OVER (PARTITION BY k) AS n,
                        percentile_disc(0.25) WITHIN GROUP (ORDER BY price DESC) OVER (PARTITION BY k) AS p, listagg(tag, ',') OVER (PARTITION BY k) IS NULL AS l,
                        listagg(tag) WITHIN GROUP (ORDER BY tag DESC) OVER (PARTITION BY k) AS t FROM o""",
    "semi_inside": "SELECT o.id FROM o LEFT SEMI JOIN (SELECT k AS x, price AS y FROM e) r ON o.k = x AND EXISTS (SELECT 1 FROM c WHERE c.k = x)",
    "but_for_theirs": "SELECT * EXCEPT (c.k, o.day, c.since) FROM o JOIN c ON o.k = c.k",
    "hive_sets": "SELECT k, tag, grouping__id AS g, count(*) AS n FROM o GROUP BY k, tag WITH CUBE HAVING grouping__id < 3",
    "spelled_stars": "SELECT k, count(DISTINCT *) AS n, max(struct(o.*)) AS m FROM o GROUP BY k",
    "bare_values": "SELECT o.id, v.x FROM VALUES 1, 2, 3 AS v(x) JOIN o ON o.k = v.x",
    "by_text_name": "SELECT id, price FROM IDENTIFIER('o') WHERE k > 1",
}

# Over a table with a column of every type that Delta stores.
TYPES = {
    "all_types": "SELECT * FROM p WHERE id > 1",
    "typed_pairs": "SELECT a.id, b.bi, b.ch, b.vc, b.tn, b.va, b.ma, b.su, b.fl, b.dc FROM p a LEFT JOIN p b ON a.bi = b.bi AND a.tn <= b.tn",
    "by_binary": "SELECT bi, count(*) AS n, max(ts) AS a, min(tn) AS b, max(ch) AS c, sum(fl) AS d, sum(dc) AS e, avg(dc) AS f FROM p GROUP BY bi",
    "by_nested": "SELECT su, ar, count(*) AS n, sum(sm) AS a, max(su) AS b, avg(ti) AS c FROM p GROUP BY su, ar",
    "by_text": "SELECT ch, vc, count(*) AS n FROM p WHERE ch = 'ab' OR vc > 'b' GROUP BY ch, vc",
    "by_times": "SELECT tn, dt, bo, count(*) AS n, max(vc) AS v FROM p GROUP BY tn, dt, bo",
    "once": "SELECT DISTINCT su, bi, tn, ch, fl FROM p",
    "latest_typed": "SELECT id, va, ma, bi FROM p QUALIFY row_number() OVER (PARTITION BY ch ORDER BY ts DESC, id) = 1",
    "variants": "SELECT id, variant_get(va, '$.a', 'int') AS a, try_variant_get(va, '$.b[1]', 'int') AS b FROM p",
    "variant_rows": "SELECT p.id, t.key, t.value FROM p, LATERAL variant_explode(va) AS t(pos, key, value)",
    "mapped": "SELECT id, key, value FROM p LATERAL VIEW OUTER explode(ma) AS key, value",
    "paths": "SELECT id, ma['m'] AS m, su.a AS a, su.b[0].c AS c, su.b.c AS cs, ar[0] AS first FROM p",
    "unnamed": "SELECT id, inline_outer(su.b) FROM p",
    "but_for_fields": "SELECT * EXCEPT (su.a, p.va, ma) FROM p",
    "struct_of_all": "SELECT id, struct(su.*) AS s, hash(ch, su.*) AS h FROM p",
    "map_around": "SELECT a.id, (SELECT max(value) FROM (SELECT explode(b.ma) FROM p b WHERE b.ch = a.ch)) AS x FROM p a",
    "unnamed_pairs": "SELECT explode(ma), id FROM p",
    "unnamed_view": "SELECT id, key, t.value, x.c FROM p LATERAL VIEW OUTER explode(ma) t LATERAL VIEW inline(su.b) x",
    "unnamed_lateral": "SELECT p.id, col FROM p, LATERAL explode(ar)",
    "by_colon": "SELECT va:a::int AS a, count(*) AS n, sum(va:b[1]::int) AS s FROM p GROUP BY va:a::int",
    "spans": "SELECT id, CAST(ts - TIMESTAMP'2024-01-01' AS STRING) AS span FROM p WHERE tn - TIMESTAMP_NTZ'2024-01-01' > INTERVAL 1 HOUR",
    "nested_keys": "SELECT a.id, b.id AS other FROM p a JOIN p b ON a.su = b.su AND a.ar <=> b.ar",
    "collated": "SELECT id, vc, lower(vc) COLLATE UNICODE_CI = 'V1' AS same FROM p WHERE vc COLLATE UTF8_LCASE <> 'V2'",
}  # fmt: skip

# What `make test` has time for; `make fuzz` runs all.
FEW = frozenset(
    """full_ not_in not_in_or share_of_all over_share most_common correlated except_all latest numbered best over_best pivot_ lateral_left""".split()
)

SETUP = [
    f"CREATE TABLE o (id BIGINT, k INT, price DECIMAL(8,2), day DATE, tag STRING) USING DELTA {FEED}",
    "CREATE TABLE c (k INT, name STRING, since DATE) USING DELTA",
    f"CREATE TABLE e (id BIGINT, k INT, price DECIMAL(8,2), day DATE, tag STRING) USING DELTA {FEED}",
    "INSERT INTO o SELECT id, IF(id % 7 = 0, NULL, id % 4), id % 5 + 0.5, DATE'2024-01-01' + CAST(id % 6 AS INT), "
    "IF(id % 5 = 0, NULL, 'a-' || id % 3) FROM range(1, 25)",
    "INSERT INTO o SELECT * FROM o WHERE id IN (3, 4)",
    "INSERT INTO c VALUES (0, 'zero', DATE'2024-01-01'), (1, 'one', DATE'2024-01-02'), (1, 'uno', DATE'2024-01-05'), "
    "(2, NULL, NULL), (2, NULL, NULL), (NULL, 'none', DATE'2024-01-03'), (9, 'x', DATE'2024-01-01')",
    "INSERT INTO e SELECT id * 2, IF(id % 5 = 0, NULL, id % 3), id % 6, DATE'2024-01-02' + CAST(id % 4 AS INT), 'a-' || id % 2 "
    "FROM range(1, 12)",
]  # fmt: skip

ROUNDS = [
    # in every table at once: matches found and lost, NULL keys, duplicates, moved keys
    ["INSERT INTO o VALUES (30, 9, 4.5, DATE'2024-01-04', 'a-1'), (30, 9, 4.5, DATE'2024-01-04', 'a-1'), (31, NULL, NULL, NULL, NULL)",
     "UPDATE o SET k = 5, price = price + 2 WHERE id IN (5, 6)", "DELETE FROM o WHERE id IN (1, 3, 8)",
     "INSERT INTO c VALUES (5, 'five', DATE'2024-01-06'), (3, 'three', DATE'2024-01-01')",
     "UPDATE c SET name = 'moved', k = 3 WHERE k = 9", "DELETE FROM c WHERE k = 1 AND name = 'one'",
     "INSERT INTO e VALUES (60, 3, 3.5, DATE'2024-01-03', 'a-0'), (61, NULL, 9, DATE'2024-01-09', NULL)",
     "UPDATE e SET k = 1, price = 0 WHERE id = 4", "DELETE FROM e WHERE k IS NULL AND price < 9"],
    # whole groups and matches go, and everything of one table
    ["DELETE FROM o WHERE k = 2", "DELETE FROM c", "DELETE FROM e WHERE k = 2 OR k IS NULL",
     "UPDATE o SET price = 0.25, tag = 'b-b-b' WHERE id % 4 = 3",
     "INSERT INTO o VALUES (70, 1, 100, DATE'2025-01-01', 'z')"],
]  # fmt: skip
APPENDED = ["INSERT INTO o SELECT id % 5, IF(id = 90, NULL, id % 3), id, NULL, 'a-' || id FROM range(88, 94)",
            "INSERT INTO o VALUES (95, 17, 3, NULL, NULL), (95, 17, 3, NULL, NULL)"]  # fmt: skip


TYPED = [
    """CREATE TABLE p (id INT, ti TINYINT, sm SMALLINT, fl FLOAT, dc DECIMAL(38,10), bo BOOLEAN, bi BINARY, ch CHAR(4), vc VARCHAR(5), dt DATE, ts TIMESTAMP,
       tn TIMESTAMP_NTZ, va VARIANT, ar ARRAY<INT>, ma MAP<STRING, INT>, su STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>) USING DELTA""",
    """INSERT INTO p SELECT id, id % 3, id % 4, id / 7, id / 3, id % 2 = 0, CAST(concat('x', id % 3) AS BINARY), IF(id % 2 = 0, 'ab', 'c'), concat('v', id % 3),
       DATE'2024-01-01' + CAST(id % 3 AS INT), TIMESTAMP'2024-01-01' + make_dt_interval(0, id), TIMESTAMP_NTZ'2024-01-01' + make_dt_interval(id % 3),
       parse_json(concat('{"a": ', id % 3, ', "b": [1, ', id, ']}')), array(id % 2, NULL), map('m', id, 'n', id % 2),
       named_struct('a', id % 2, 'b', array(named_struct('c', concat('s', id % 2)))) FROM range(1, 9)""",
    "INSERT INTO p (id) VALUES (20), (20)",
]
TYPED_ROUNDS = [
    ["INSERT INTO p SELECT * FROM p WHERE id IN (2, 3)",
     "UPDATE p SET ch = 'ab', vc = 'zz', tn = tn + INTERVAL 1 DAY, bi = X'00FF', fl = CAST('NaN' AS FLOAT), va = parse_json('{\"b\": [1, 2]}'), "
     "ma = map('m', 1), su.a = 9 WHERE id IN (4, 5)",
     "DELETE FROM p WHERE id IN (1, 7)"],
    ["UPDATE p SET va = NULL, fl = 1.5, ar = array(7) WHERE id IN (2, 4)", "DELETE FROM p WHERE id = 3"],
]  # fmt: skip
